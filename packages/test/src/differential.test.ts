import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { testRuns, testSeed } from "@skald/testkit";
import type { Answered, DifferenceClass } from "./testing/differential/compare.js";
import { randomPushes } from "./testing/differential/data.js";
import { askAll, compareAll, pushAll } from "./testing/differential/differential.js";
import { type Asked, randomQueries } from "./testing/differential/queries.js";
import { makeFolder, removeFolders, startServer } from "./testing/server.js";

afterAll(removeFolders);

/**
 * Two differences are allowed. Where several rows fail a query, the error names the row of the scan that ended first. Floats
 * are added in another order.
 */
const allowed: readonly DifferenceClass[] = ["error text", "last digits of a value"];
const spanMs = 30 * 3_600_000;
const flags = [
  "-server.worker-threads=2",
  // The rows are in several local segments, and the last ones in heads.
  "-ingester.head-target-size=64KB",
];
let calls: readonly Asked[];
let before: readonly Answered[];
let after: readonly Answered[];

beforeAll(async () => {
  const folder = makeFolder();
  const endMs = Date.now();
  calls = randomQueries(testSeed(), testRuns(350), { endMs, spanMs });
  const first = await startServer(folder, flags);
  await pushAll(first, randomPushes({ seed: testSeed(), endMs, rowCount: 1500, hasTies: true }));
  before = await askAll(first, calls);
  expect((await fetch(`${first.url}/flush`, { method: "POST" })).status).toBe(204);
  await first.kill("SIGTERM");
  const second = await startServer(folder, flags);
  after = await askAll(second, calls);
  await second.kill("SIGTERM");
});

it("most random queries have an answer that is not empty", () => {
  const found = before.filter(({ status, text }) => status === 200 && !/"result":\[\]/.test(text));
  expect(found.length).toBeGreaterThan(calls.length / 4);
});

it("a process answers after a flush and a restart what it answered before", () => {
  const found = [...compareAll(calls, before, after)].filter(([kind]) => !allowed.includes(kind));
  const examples = found.map(([kind, all]): [DifferenceClass, number, unknown] => [
    kind,
    all.length,
    all[0],
  ]);
  expect(examples).toEqual([]);
});
