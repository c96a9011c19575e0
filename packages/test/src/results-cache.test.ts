import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { testRuns, testSeed } from "@skald/testkit";
import { getJson, nowNs, pushJson } from "./testing/client.js";
import type { DifferenceClass } from "./testing/differential/compare.js";
import { randomPushes } from "./testing/differential/data.js";
import { askAll, compareAll, pushAll } from "./testing/differential/differential.js";
import { randomQueries } from "./testing/differential/queries.js";
import { makeFolder, removeFolders, startServer, type TestServer } from "./testing/server.js";

let server: TestServer;
beforeAll(async () => {
  server = await startServer(makeFolder(), [
    "-querier.cache-results",
    "-querier.cache-instant-metric-results",
    "-server.worker-threads=2",
    "-ingester.head-target-size=64KB",
    // Lines may be late without a limit.
    "-ingester.max-chunk-age=200h",
    "-compactor.retention-enabled",
    "-compactor.delete-request-store=filesystem",
  ]);
});
afterAll(removeFolders);

/** The same differences as in differential.test.ts. */
const allowed: readonly DifferenceClass[] = ["error text", "last digits of a value"];
const noCache = { "cache-control": "no-cache" };

describe("answers from kept results", () => {
  it("are those of random queries that take nothing from there, whatever was written since", async () => {
    const spanMs = 30 * 3_600_000;
    const endMs = Date.now();
    const calls = randomQueries(testSeed(), testRuns(150), { endMs, spanMs });
    for (const seed of [testSeed(), testSeed() + 1, testSeed() + 2]) {
      await pushAll(server, randomPushes({ seed, endMs, rowCount: 400, hasTies: true }));
      await askAll(server, calls);
      const kept = await askAll(server, calls);
      const fresh = await askAll({ ...server, headers: noCache }, calls);
      const found = [...compareAll(calls, kept, fresh)].filter(([kind]) => !allowed.includes(kind));
      expect(found.map(([kind, all]) => [kind, all.length, all[0]])).toEqual([]);
    }
  });
});

describe("a range query that is asked again", () => {
  const startNs = nowNs(-7200e9);
  const at = (minutes: number) => nowNs(-7200e9 + minutes * 60e9);
  const query = 'sum(count_over_time({job="kept"}[1m]))';
  const params = { query, start: startNs, end: nowNs(0), step: "60" };

  interface Answer {
    readonly data: {
      readonly result: readonly { readonly values: readonly (readonly [number, string])[] }[];
      readonly stats: {
        readonly cache: { readonly result: Readonly<Record<string, number>> };
        readonly summary: { readonly totalLinesProcessed: number };
      };
    };
  }

  async function ask(headers: Record<string, string> = {}) {
    const url = `${server.url}/loki/api/v1/query_range?${new URLSearchParams(params)}`;
    const answer = await fetch(url, { headers });
    const { data } = (await answer.json()) as Answer;
    const counts = data.result.flatMap(({ values }) => values.map(([, count]) => Number(count)));
    return { sum: counts.reduce((a, b) => a + b, 0), stats: data.stats };
  }
  const push = async (minutes: number) =>
    expect(await pushJson(server.url, { job: "kept" }, [[at(minutes), "line"]])).toBe(204);

  it("reads only what is new, shows late lines at once, and hides what was deleted", async () => {
    for (const minutes of [5, 50, 90]) await push(minutes);
    const first = await ask();
    expect(first.sum).toBe(3);
    expect(first.stats.cache.result).toMatchObject({ entriesFound: 0 });
    expect(first.stats.cache.result.entriesStored).toBeGreaterThanOrEqual(2);

    const second = await ask();
    expect(second.sum).toBe(3);
    expect(second.stats.summary.totalLinesProcessed).toBe(0);
    expect(second.stats.cache.result.entriesFound).toBe(first.stats.cache.result.entriesStored);
    expect(second.stats.cache.result.queryLengthServed).toBeGreaterThan(7000e9);

    await push(20);
    const late = await ask();
    expect(late.sum).toBe(4);
    expect(late.stats.cache.result.queryLengthServed).toBeGreaterThan(6000e9);

    const bypass = await ask(noCache);
    expect(bypass.sum).toBe(4);
    expect(bypass.stats.cache.result).toMatchObject({ entriesRequested: 0, entriesStored: 0 });

    const [start, end] = [startNs, at(30)].map((ns) => ns.slice(0, -9)) as [string, string];
    const wanted = new URLSearchParams({ query: '{job="kept"}', start, end });
    const deleted = await fetch(`${server.url}/loki/api/v1/delete?${wanted}`, { method: "POST" });
    expect(deleted.status).toBe(204);
    expect((await ask()).sum).toBe(2);
    const [{ request_id }] = await getJson<[{ request_id: string }]>(
      server.url,
      "/loki/api/v1/delete",
    );
    const cancel = `${server.url}/loki/api/v1/delete?request_id=${request_id}`;
    expect((await fetch(cancel, { method: "DELETE" })).status).toBe(204);
    expect((await ask()).sum).toBe(4);
  });
});
