import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "@jest/globals";
import { DirectorySyncs } from "./syncs.js";

const directory = mkdtempSync(join(tmpdir(), "skald-syncs-"));
afterAll(() => rmSync(directory, { recursive: true }));

it("shares a sync among those that ask while one runs, and never one that began before", async () => {
  const syncs = new DirectorySyncs();
  const order: string[] = [];
  const ask = async (who: string) => {
    await syncs.sync(directory);
    order.push(who);
  };
  const first = ask("first");
  const shared = syncs.sync(directory);
  expect(syncs.sync(directory)).toBe(shared);
  await Promise.all([first, ask("second"), ask("third")]);
  expect(order).toEqual(["first", "second", "third"]);
  expect(syncs.sync(directory)).not.toBe(shared);
});

it("does not mind what is gone, and ends at the top", async () => {
  const syncs = new DirectorySyncs();
  await syncs.sync(join(directory, "gone"));
  await syncs.syncUpTo(join(directory, "a", "b"), directory);
});
