import { expect, it } from "@jest/globals";
import type { ChangesRequest, SpanChanges } from "@skald/contracts";
import { type MetricExpr, parseQuery, type QueryParams, type QueryResult } from "@skald/logql";
import { type PlainRow, runQuery } from "@skald/logql/testing/run-query";
import { floorDiv, joinQueryStats } from "@skald/model";
import { defaultLimits } from "@skald/runtime/config";
import { testRuns, testSeed } from "@skald/testkit";
import fc from "fast-check";
import { answerRange } from "../split/metric-query.js";
import { MemoryStore } from "./memory-store.js";

const seed = testSeed();
const second = 1_000_000_000n;
const minute = 60n * second;
const t0 = 1_700_006_400n * second;
const limits = {
  ...defaultLimits,
  ...{ split_queries_by_interval: 30 * 60_000, max_query_parallelism: 3, retention_period: 0 },
};

/** Sums of whole numbers, so that they are exact in any order. */
const metrics = [
  'sum by (app) (rate({app=~".+"}[3m]))',
  'topk(1, count_over_time({app=~".+"}[90s]))',
  'avg_over_time({app=~".+"} | unwrap v [5m]) by (pod)',
  'max by (app) (max_over_time({app=~".+"} | unwrap v [30s]))',
  'quantile_over_time(0.3, {app=~".+"} | unwrap v [4m]) by (app)',
  'first_over_time({app=~".+"} | unwrap v [2m]) by (app)',
  'last_over_time({app=~".+"} | unwrap v [2m] offset 7m) by (app)',
  'count_over_time({app=~".+"}[1m] offset -5m)',
  'rate_counter({app=~".+"} | unwrap v [3m])',
  'absent_over_time({app="a"} |= "hit" [2m])',
  'sum by (app) (bytes_rate({app=~".+"}[2m])) / sum by (app) (count_over_time({app=~".+"}[1h]))',
  'sum(count_over_time({app="a"}[2m])) or sum(count_over_time({app="b"}[1m]))',
  'label_replace(sum by (app) (count_over_time({app=~".+"}[2m])), "x", "$1", "app", "(.*)")',
];

const row: fc.Arbitrary<PlainRow> = fc.record({
  labels: fc.record({ app: fc.constantFrom("a", "b", "c"), pod: fc.constantFrom("p", "q") }),
  ts: fc.integer({ min: 0, max: 14_400 }).map((half) => t0 + (BigInt(half) * second) / 2n),
  line: fc.constantFrom("hit", "miss"),
  metadata: fc.record({ v: fc.integer({ min: -3, max: 9 }).map(String) }, { requiredKeys: [] }),
});

type Event =
  | { readonly kind: "push"; readonly rows: readonly PlainRow[] }
  | { readonly kind: "forget" }
  | { readonly kind: "delete"; readonly app: string }
  | {
      readonly kind: "ask";
      readonly metric: number;
      readonly params: QueryParams;
      readonly splitNs: bigint;
    };

const params: fc.Arbitrary<QueryParams> = fc
  .record({
    start: fc.integer({ min: -10, max: 110 }),
    length: fc.integer({ min: 0, max: 90 }),
    step: fc.constantFrom(minute, minute, 25n * second, 11n * minute),
  })
  .map(({ start, length, step }) => ({
    ...{ limit: 1, direction: "forward" as const, intervalNs: 0n, stepNs: step },
    startNs: t0 + BigInt(start) * minute,
    endNs: t0 + BigInt(start + length) * minute,
  }));

const ask: fc.Arbitrary<Event> = fc.record({
  kind: fc.constant("ask" as const),
  metric: fc.integer({ min: 0, max: metrics.length - 1 }),
  params,
  splitNs: fc.constantFrom(0n, 0n, 10n * minute),
});
const push: fc.Arbitrary<Event> = fc
  .array(row, { maxLength: 12 })
  .map((rows) => ({ kind: "push", rows }));
const rare: fc.Arbitrary<Event> = fc.constantFrom<Event>(
  { kind: "forget" },
  { kind: "delete", app: "a" },
);

/** Rows that are written and deleted, and who tells of it by the minute. */
class Rows {
  rows: PlainRow[] = [];
  #life = 0;
  #writes: bigint[][] = [];

  push(rows: readonly PlainRow[]): void {
    const known = new Set(this.rows.map(({ ts }) => ts));
    this.rows = [...this.rows, ...rows.filter(({ ts }) => !known.has(ts))];
    this.#writes.push(rows.map(({ ts }) => floorDiv(ts, minute)));
  }

  forget(): void {
    this.#life++;
  }

  delete(app: string): void {
    this.rows = this.rows.filter(({ labels }) => labels.app !== app);
    this.#life++;
  }

  async run(_: "changes", { spans }: ChangesRequest): Promise<SpanChanges[]> {
    return spans.map(({ since, ...span }) => {
      const token = `${this.#life} ${this.#writes.length}`;
      const [life, writes] = (since ?? "-1 0").split(" ").map(Number) as [number, number];
      if (life !== this.#life) return { token, changed: [span] };
      const minutes = [...new Set(this.#writes.slice(writes).flat())].sort((a, b) =>
        a < b ? -1 : 1,
      );
      const changed = minutes.map((at) => ({ fromNs: at * minute, toNs: (at + 1n) * minute }));
      return {
        token,
        changed: changed.filter((r) => r.toNs > span.fromNs && r.fromNs < span.toNs),
      };
    });
  }
}

function textOf(result: unknown): string {
  return JSON.stringify(result, (_, value) => {
    if (typeof value === "bigint") return String(value);
    return value instanceof Float64Array || value instanceof Uint32Array ? [...value] : value;
  });
}

it("what is given from the cache is what a query of now gives", async () => {
  let taken = 0;
  const property = fc.asyncProperty(
    fc.array(fc.oneof({ arbitrary: ask, weight: 6 }, { arbitrary: push, weight: 3 }, rare), {
      minLength: 4,
      maxLength: 14,
    }),
    fc.array(fc.integer({ min: 0, max: metrics.length - 1 }), { minLength: 1, maxLength: 2 }),
    async (events, chosen) => {
      const world = new Rows();
      const store = new MemoryStore({
        ...{ maxBytes: 1e7, maxItems: 0, ttlMs: 1, compress: false },
        clock: { elapsedMs: () => 0 },
      });
      for (const event of events) {
        if (event.kind === "push") world.push(event.rows);
        else if (event.kind === "forget") world.forget();
        else if (event.kind === "delete") world.delete(event.app);
        else {
          // Few queries, many times.
          const text = metrics[chosen[event.metric % chosen.length]!]!;
          const expr = parseQuery(text) as MetricExpr;
          const answer = await answerRange(
            {
              ...{ expr, params: event.params, splitNs: event.splitNs, maxSeries: 500 },
              context: { tenants: ["t"], limits, querier: world, stores: { result: store } },
              ask: async (part) => ({
                result: runQuery(expr, world.rows, part) as QueryResult,
                stats: joinQueryStats([]),
              }),
            },
            new AbortController().signal,
          );
          taken += answer.stats.caches?.result?.servedSeconds ?? 0;
          expect(textOf(answer.result)).toBe(textOf(runQuery(expr, world.rows, event.params)));
        }
      }
    },
  );
  await fc.assert(property, { seed, numRuns: testRuns(150) });
  expect(taken).toBeGreaterThan(0);
});
