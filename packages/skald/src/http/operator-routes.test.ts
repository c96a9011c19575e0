import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterAll, expect, it } from "@jest/globals";
import type { Ingester } from "@skald/ingester";
import type { Route } from "@skald/transport";
import { type IngesterEnding, operatorRoutes, ShutdownMarker } from "./operator-routes.js";

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

/** Calls a path of an ingester; tells how it was to end, and whether the process was to end behind it. */
async function askToEnd(path: string, query = "", state: Ingester["state"] = "running") {
  const asked: IngesterEnding[] = [];
  const reasons: string[] = [];
  const routes = operatorRoutes({
    ingester: { flush: async () => undefined, state },
    marker: new ShutdownMarker(""),
    stopIngester: async (ending) => void asked.push(ending),
    endProcess: (reason) => void reasons.push(reason),
  });
  const { status, body } = await (routes.find((route) => route.path === path) as Route).handler({
    ...{ method: "POST", path, variables: {}, headers: {}, body: new Uint8Array(0) },
    params: new URLSearchParams(query),
    signal: new AbortController().signal,
  });
  await nextTurn();
  return { status, body, asked, ends: reasons.length > 0 };
}

const usual = { flush: true, deleteTokens: false };

it.each<[string, string, IngesterEnding, boolean]>([
  ["/ingester/shutdown", "", usual, true],
  ["/ingester/shutdown", "flush=false&terminate=f", { ...usual, flush: false }, false],
  ["/ingester/shutdown", "delete_ring_tokens=1", { flush: true, deleteTokens: true }, true],
  ["/ingester/shutdown", "flush=maybe&terminate=", usual, true],
  ["/ingester/shutdown", "flush=constructor&terminate=toString", usual, true],
  ["/ingester/flush_shutdown", "flush=false&terminate=true", usual, false],
])("%s?%s", async (path, query, ending, ends) => {
  expect(await askToEnd(path, query)).toMatchObject({ status: 204, asked: [ending], ends });
});

it("an ingester that is down is not shut down again", async () => {
  const answer = await askToEnd("/ingester/shutdown", "", "stopped");
  expect(answer).toMatchObject({
    status: 503,
    body: "Ingester is stopping or already stopped.\n",
    asked: [],
    ends: false,
  });
});
