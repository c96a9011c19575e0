import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "@jest/globals";
import { ShutdownMarker } from "./operator-routes.js";

const folder = mkdtempSync(join(tmpdir(), "skald-marker-"));
afterAll(() => rmSync(folder, { recursive: true }));

it("a prepared shutdown is remembered until it is taken back", () => {
  const directory = join(folder, "deep");
  const marker = new ShutdownMarker(directory);
  expect(marker.isSet()).toBe(false);
  marker.clear();
  marker.set();
  marker.set();
  expect(readdirSync(directory)).toEqual(["shutdown-requested.txt"]);
  expect(new ShutdownMarker(directory).isSet()).toBe(true);
  marker.clear();
  expect(marker.isSet()).toBe(false);
});

it("without a place there is no marker", () => {
  const marker = new ShutdownMarker("");
  expect(marker.isSet()).toBe(false);
  expect(() => marker.set()).toThrow("set ingester.shutdown_marker_path");
});
