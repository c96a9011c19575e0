import { describe, expect, it } from "@jest/globals";
import { parseQuery } from "../syntax/parser/parser.js";
import { defaultQueryLimits } from "./limits.js";
import type { MetricPlan, QueryParams } from "./plan.js";
import { planQuery } from "./planner.js";

const params: QueryParams = {
  startNs: 1000n,
  endNs: 1950n,
  stepNs: 100n,
  limit: 10,
  direction: "backward",
  intervalNs: 0n,
};

function plan(query: string, over: Partial<QueryParams> = {}): MetricPlan {
  const made = planQuery(parseQuery(query), { ...params, ...over });
  if (made.kind !== "metric") throw new Error("a log plan");
  return made;
}

describe("planQuery", () => {
  it.each([
    ['sum by (a) (rate({x="y"}[1s]))', "leaf", ["a"], "needed"],
    ['sum(sum_over_time({x="y"} | json | unwrap v [1s]))', "leaf", [], "needed"],
    ['max by (a) (max_over_time({x="y"} | json | unwrap v [1s]))', "leaf", ["a"], "all"],
    ['max by (a) (max_over_time({x="y"} | unwrap v [1s]))', "leaf", ["a"], "needed"],
    ['min(min_over_time({x="y"} | logfmt | unwrap v [1s]))', "leaf", [], "all"],
    ['max(rate({x="y"}[1s]))', "vector_aggregation", undefined, "needed"],
    ['count(count_over_time({x="y"} | json [1s]))', "vector_aggregation", undefined, "all"],
    ['sum(avg_over_time({x="y"} | json | unwrap v [1s]))', "vector_aggregation", undefined, "all"],
    [
      'sum(max_over_time({x="y"} | json | unwrap v [1s]) by (b))',
      "vector_aggregation",
      ["b"],
      "needed",
    ],
    ['absent_over_time({x="y"} | json [1s])', "leaf", [], "all"],
  ])("%s", (query, root, grouping, extract) => {
    const made = plan(query);
    expect(made.root.kind).toBe(root);
    expect(made.leaves.map((leaf) => leaf.grouping?.labels)).toEqual([grouping]);
    expect(made.leaves[0]?.extract).toBe(extract);
  });

  it("has the points from start to end, and the rows of their windows", () => {
    const { points, leaves } = plan('rate({a="b"}[1s] offset 2s)');
    expect(points).toEqual({ startNs: 1000n, stepNs: 100n, count: 10 });
    const startNs = 1001n - 3_000_000_000n;
    const windows = { startNs, stepNs: 100n, count: 10, rangeNs: 1_000_000_000n };
    expect(leaves[0]).toMatchObject({ windows, fromNs: startNs, toNs: 1901n - 2_000_000_000n });
  });

  it("evaluates an instant query at its end", () => {
    const { points, instant } = plan('rate({a="b"}[1s])', { stepNs: 0n });
    expect([points, instant]).toEqual([{ startNs: 1950n, stepNs: 0n, count: 1 }, true]);
  });

  it("scans equal range aggregations once", () => {
    const made = plan('sum(rate({a="b"}[1s])) / sum(rate({a="b"}[1s])) + sum(rate({a="c"}[1s]))');
    expect(made.leaves.map(({ id }) => id)).toEqual([0, 1]);
  });

  it("limits the series early only where they are the result's", () => {
    const { maxSeries, maxInnerSeries } = defaultQueryLimits;
    const bounds = ['rate({a="b"}[1s])', 'sort(rate({a="b"}[1s]))', 'topk(1, rate({a="b"}[1s]))'];
    expect(bounds.map((query) => plan(query).leaves[0]?.maxSeries)).toEqual([
      maxSeries,
      maxSeries,
      maxInnerSeries,
    ]);
  });

  it("refuses approx_topk over a range", () => {
    expect(() => plan('approx_topk(2, rate({a="b"}[1s]))')).toThrow(
      "count min sketches are only supported on instant queries",
    );
  });

  it("survives a structured clone", () => {
    const made = plan('sum(rate({a="b"} |= "x" | json [1s])) > 2');
    expect(structuredClone(made)).toEqual(made);
  });
});
