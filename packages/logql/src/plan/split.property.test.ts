import { describe, expect, it } from "@jest/globals";
import { formatLabels, labelsFromObject } from "@skald/model";
import { testRuns } from "@skald/testkit";
import fc from "fast-check";
import { evaluate } from "../engine/engine.js";
import { mergeMetricPartials } from "../engine/range.js";
import { combineMetricPartials } from "../scan/partial.js";
import { parseQuery } from "../syntax/parser.js";
import type { PlainRow } from "../testing/memory-block.js";
import { layOut, oneSource, runQuery, scanMetric } from "../testing/run-query.js";
import type { LeafPlan, MetricPlan, QueryParams, QueryResult, Shard } from "./plan.js";
import { isInShard, longestRangeNs, planQuery, splitLeaf } from "./planner.js";

const second = 1_000_000_000n;
const t0 = 1_700_006_400n * second - 60n * second;

const row: fc.Arbitrary<PlainRow> = fc.record({
  labels: fc.record({ app: fc.constantFrom("a", "b", "c"), pod: fc.constantFrom("p", "q") }),
  ts: fc.integer({ min: 0, max: 239 }).map((half) => t0 + (BigInt(half) * second) / 2n),
  line: fc.constantFrom("hit", "miss"),
  metadata: fc.record({ v: fc.integer({ min: -3, max: 9 }).map(String) }, { requiredKeys: [] }),
});
const rows = fc.uniqueArray(row, { selector: ({ ts }) => ts, maxLength: 60, size: "max" });

const metric = fc.constantFrom(
  'sum by (app) (rate({app=~".+"}[13s]))',
  'topk(1, count_over_time({app=~".+"}[20s]))',
  'avg_over_time({app=~".+"} | unwrap v [30s]) by (pod)',
  'max by (app) (max_over_time({app=~".+"} | unwrap v [30s]))',
  'stddev_over_time({app=~".+"} | unwrap v [40s]) by (pod)',
  'quantile_over_time(0.3, {app=~".+"} | unwrap v [40s]) by (app)',
  'first_over_time({app=~".+"} | unwrap v [30s]) by (app)',
  'last_over_time({app=~".+"} | unwrap v [30s] offset 3s) by (app)',
  'rate_counter({app=~".+"} | unwrap v [30s])',
  'absent_over_time({app="a"} |= "hit" [5s])',
  'quantile_over_time(0.3, {app=~".+"} | unwrap v [40s]) / rate_counter({app=~".+"} | unwrap v [40s])',
  'sum by (app) (bytes_rate({app=~".+"}[10s])) / sum by (app) (count_over_time({app=~".+"}[10s]))',
  'sum(bytes_rate({app="a"}[10s])) / on () count(count_over_time({app=~".+"}[1m]))',
);

const params: fc.Arbitrary<QueryParams> = fc
  .record({
    start: fc.integer({ min: -20, max: 100 }),
    length: fc.integer({ min: 0, max: 60 }),
    step: fc.constantFrom(0n, second, 7n * second),
    limit: fc.constantFrom(1, 5, 100),
    direction: fc.constantFrom("forward" as const, "backward" as const),
    intervalNs: fc.constantFrom(0n, 0n, 4n * second),
  })
  .map(({ start, length, step, ...rest }) => ({
    ...rest,
    startNs: t0 + BigInt(start) * second,
    endNs: t0 + BigInt(start + length) * second,
    stepNs: step,
  }));

const split = fc.record({
  intervalNs: fc.constantFrom(0n, 10n * second, 60n * second),
  shards: fc.constantFrom(1, 2, 5),
});

function ofShard(all: readonly PlainRow[], shard: Shard | undefined): PlainRow[] {
  return all.filter(({ labels }) => isInShard(shard, formatLabels(labelsFromObject(labels))));
}

function metricPlan(text: string, asked: QueryParams): MetricPlan {
  const plan = planQuery(parseQuery(text), asked);
  if (plan.kind !== "metric") throw new Error("a log plan");
  return plan;
}

/** Scans each part of a leaf on its own. */
function scanParts(parts: readonly LeafPlan[], all: readonly PlainRow[]) {
  return parts.map((part) => {
    const blocks = layOut(ofShard(all, part.shard), { ...oneSource, blockRows: 20 });
    return scanMetric(part, blocks[0] ?? []);
  });
}

/** Results with numbers cut to nine digits, because sums of parts may differ in the last ones. */
function rounded(result: QueryResult): unknown {
  return JSON.parse(
    JSON.stringify(result, (_, value) => {
      if (typeof value === "bigint") return String(value);
      if (value instanceof Float64Array) return [...value];
      if (typeof value === "number") return Number(value.toPrecision(9));
      return value;
    }),
  );
}

describe("a split query", () => {
  it("gives the result of the whole when leaves are cut by time and sharded", () => {
    fc.assert(
      fc.property(metric, rows, params, split, (text, all, asked, options) => {
        const plan = metricPlan(text, asked);
        const leaves = plan.leaves.map((leaf) => {
          const partials = scanParts(splitLeaf(leaf, options), all);
          // Merging in two steps, as in a querier and then in a frontend, changes nothing.
          const half = Math.ceil(partials.length / 2);
          const merged = [partials.slice(0, half), partials.slice(half)].map((some) =>
            combineMetricPartials(leaf, some),
          );
          return [leaf.id, mergeMetricPartials(leaf, merged)] as const;
        });
        const whole = runQuery(parseQuery(text), all, asked) as QueryResult;
        expect(rounded(evaluate(plan, new Map(leaves)))).toEqual(rounded(whole));
      }),
      { numRuns: testRuns(100) },
    );
  });
});

describe("longestRangeNs", () => {
  it("looks into every operand", () => {
    const expr = parseQuery('sum(rate({a="b"}[1m])) / max(rate({a="b"}[5m])) > 1');
    if (expr.kind === "log") throw new Error("a log query");
    expect(longestRangeNs(expr)).toBe(300n * second);
  });
});
