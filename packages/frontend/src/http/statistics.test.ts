import { describe, expect, it } from "@jest/globals";
import { querierOf } from "@skald/contracts/testing/fakes";
import { SkaldError } from "@skald/model";
import { Frontend } from "../frontend.js";
import type { QueryFacts } from "../query-context.js";
import { bodyOf, contextOf, logs, makeApi, stats } from "../testing/api.js";

describe("statistics", () => {
  it("say what was measured, and nothing of what was not", async () => {
    const { call } = makeApi(logs);
    const range = { query: '{app="a"}', start: "1", end: "2" };
    const { summary, ingester, store, querier } = bodyOf(
      await call("/loki/api/v1/query_range", range),
    ).data.stats;
    expect(summary).toEqual({
      bytesProcessedPerSecond: 60,
      linesProcessedPerSecond: 6,
      totalBytesProcessed: 30,
      totalLinesProcessed: 3,
      execTime: 0.5,
      queueTime: 0,
      subqueries: 0,
      totalEntriesReturned: 1,
      splits: 0,
      shards: 1,
      totalPostFilterLines: 0,
    });
    for (const side of [ingester, store, querier])
      expect(JSON.stringify(side)).not.toMatch(/StructuredMetadata|chunkRefsFetchTime/);
  });

  it("are told to whoever counts, of queries that were run", async () => {
    const told: QueryFacts[] = [];
    const onQuery = (facts: QueryFacts) => void told.push(facts);
    const ask = async (query: string, fails?: Error) => {
      const answer = { result: logs, stats };
      const frontend = new Frontend({ clock: { nowMs: () => 1_795_000_000_000 } });
      const querier = querierOf({
        query: () => (fails === undefined ? Promise.resolve(answer) : Promise.reject(fails)),
      });
      const context = contextOf({ querier, queueSeconds: 3, onQuery });
      const params = { startNs: 1n, endNs: 2n, stepNs: 1n, intervalNs: 0n, limit: 1 };
      const range = { ...params, query, direction: "forward" } as const;
      return frontend.run(frontend.planRange(range, context), context);
    };
    expect((await ask('{app="a"}')).stats.queueSeconds).toBe(3);
    await ask('{app="a"} |= "x"');
    await expect(ask('{app="a"} |=')).rejects.toThrow();
    await expect(ask('{app="a"}', new Error("bug"))).rejects.toThrow("bug");
    const late = new SkaldError("deadline_exceeded", "late");
    await expect(ask('count_over_time({app="a"}[1m])', late)).rejects.toThrow("late");
    expect(
      told.map(({ status, type, range, stats: s }) => [status, type, range, s?.shards]),
    ).toEqual([
      [200, "limited", "range", 1],
      [200, "filter", "range", 1],
      [504, "metric", "range", undefined],
    ]);
  });
});
