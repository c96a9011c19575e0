import { describe, expect, it } from "@jest/globals";
import { parseQuery } from "../syntax/parser.js";
import { defaultQueryLimits } from "./budget.js";
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
    ['absent_over_time({x="y"} | json [1s])', "leaf", [], "needed"],
  ])("%s", (query, root, grouping, extract) => {
    const made = plan(query);
    expect(made.root.kind).toBe(root);
    expect(made.leaves.map((leaf) => leaf.grouping?.labels)).toEqual([grouping]);
    expect(made.leaves[0]?.extract).toBe(extract);
  });

  const of = '{a="b", c="d"} | json';

  it.each([
    ["of by", `avg by (a, b) (rate(${of}[1s]))`, ["a", "b"]],
    ["none", `count(count_over_time(${of}[1s]))`, []],
    ["behind a comparison with a number", `max by (a) (2 * rate(${of}[1s]) > 1)`, ["a"]],
    [
      "of two aggregations",
      `avg by (a) (rate(${of}[1s])) / avg by (b) (rate(${of}[1s]))`,
      ["a", "b"],
    ],
    ["all: of without", `avg without (a) (rate(${of}[1s]))`, undefined],
    ["all: of the best", `topk by (a) (1, rate(${of}[1s]))`, undefined],
    ["all: in order", `avg by (a) (sort(rate(${of}[1s])))`, undefined],
    ["all: compared", `avg by (a) (rate(${of}[1s]) / rate(${of}[1s]))`, undefined],
    [
      "all: replaced",
      `avg by (a) (label_replace(rate(${of}[1s]), "a", "$1", "b", "(.*)"))`,
      undefined,
    ],
    ["all: also in the answer", `rate(${of}[1s]) / avg by (a) (rate(${of}[1s]))`, undefined],
    [
      "all: grouped already",
      `avg by (a) (max_over_time(${of} | unwrap v [1s]) by (a, b))`,
      undefined,
    ],
  ])("knows which labels are read: %s", (_, query, read) => {
    expect(plan(query).leaves.map(({ labelsRead }) => labelsRead)).toEqual([read]);
  });

  it("has the points from start to end, and the rows of their windows", () => {
    const { points, leaves } = plan('rate({a="b"}[1s] offset 2s)');
    expect(points).toEqual({ startNs: 1000n, stepNs: 100n, count: 10 });
    const startNs = 1001n - 3_000_000_000n;
    const windows = { startNs, stepNs: 100n, count: 10, rangeNs: 1_000_000_000n };
    expect(leaves[0]).toMatchObject({ windows, fromNs: startNs, toNs: 1901n - 2_000_000_000n });
  });

  it("looks at no row that is too old", () => {
    const oldestNs = 1200n;
    const { points, leaves } = plan('rate({a="b"}[1s]) + rate({a="b"}[1s] offset 2s)', {
      oldestNs,
    });
    expect(points.startNs).toBe(1000n);
    expect(leaves.map(({ fromNs }) => fromNs)).toEqual([oldestNs, oldestNs]);
    expect(planQuery(parseQuery('{a="b"}'), { ...params, oldestNs })).toMatchObject({
      fromNs: oldestNs,
      toNs: 1950n,
    });
  });

  it("evaluates an instant query at its end", () => {
    const { points, instant } = plan('rate({a="b"}[1s])', { stepNs: 0n });
    expect([points, instant]).toEqual([{ startNs: 1950n, stepNs: 0n, count: 1 }, true]);
  });

  it.each([
    ["the same twice", `sum(rate(${of}[1s])) / sum(rate(${of}[1s]))`, ["rate"]],
    ["matchers in another order", `rate(${of}[1s]) / rate({c="d", a="b"} | json [1s])`, ["rate"]],
    [
      "labels of a group in another order",
      `sum by (x, y) (rate(${of}[1s])) / sum by (y, x) (rate(${of}[1s]))`,
      ["rate"],
    ],
    ["two counts", `rate(${of}[1s]) / count_over_time(${of}[1s])`, ["rate", "count_over_time"]],
    [
      "rows and their bytes",
      `sum(rate(${of}[1s])) / sum(bytes_over_time(${of}[1s])) > sum(rate(${of}[1s]))`,
      ["rate", "bytes_over_time"],
    ],
    [
      "quantiles",
      `quantile_over_time(0.5, ${of} | unwrap v [1s]) / quantile_over_time(0.9, ${of} | unwrap v [1s])`,
      ["quantile_over_time 0.5", "quantile_over_time 0.9"],
    ],
    [
      "samples with and without times",
      `quantile_over_time(0.5, ${of} | unwrap v [1s]) / rate_counter(${of} | unwrap v [1s])`,
      ["quantile_over_time 0.5", "rate_counter"],
    ],
  ])("scans once: %s", (_, query, functions) => {
    const { leaves } = plan(query);
    expect(leaves).toHaveLength(1);
    expect(
      leaves[0]!.functions.map(({ op, parameter }) => [op, parameter ?? ""].join(" ").trim()),
    ).toEqual(functions);
  });

  it("counts bytes where rows and bytes are wanted, whichever comes first", () => {
    const modes = ["rate / bytes_rate", "bytes_rate / rate", "rate / rate"].map((text) =>
      plan(text.replaceAll("rate", 'rate({a="b"}[1s])')).leaves.map(({ mode }) => mode),
    );
    expect(modes).toEqual([["bytes"], ["bytes"], ["count"]]);
  });

  it.each([
    ["another selector", 'rate({a="b"}[1s]) / rate({a="c"}[1s])'],
    ["another matcher", 'rate({a="b"}[1s]) / rate({a=~"b"}[1s])'],
    ["another range", 'rate({a="b"}[1s]) / rate({a="b"}[2s])'],
    ["another offset", 'rate({a="b"}[1s]) / rate({a="b"}[1s] offset 1s)'],
    ["another stage", 'rate({a="b"}[1s]) / rate({a="b"} |= "x" [1s])'],
    [
      "another order of stages",
      'rate({a="b"} | json | x="y" [1s]) / rate({a="b"} | x="y" | json [1s])',
    ],
    ["another unwrap", 'rate({a="b"} | unwrap x [1s]) / rate({a="b"} | unwrap y [1s])'],
    ["another grouping", 'rate({a="b"}[1s]) / sum(rate({a="b"}[1s]))'],
    [
      "something else of the rows",
      'rate({a="b"} | unwrap x [1s]) / rate_counter({a="b"} | unwrap x [1s])',
    ],
    [
      "other rules for malformed lines",
      'sum(max_over_time({a="b"} | json | unwrap x [1s]) by (c)) / max by (c) (max_over_time({a="b"} | json | unwrap x [1s]))',
    ],
  ])("scans twice: %s", (_, query) => {
    const { leaves } = plan(query);
    expect(leaves.map(({ id, functions }) => [id, functions.length])).toEqual([
      [0, 1],
      [1, 1],
    ]);
  });

  const { maxSeries, maxInnerSeries } = defaultQueryLimits;
  it.each([
    ["the result", "rate(X)", maxSeries],
    ["a sorted result", "sort(rate(X))", maxSeries],
    ["a renamed result", 'label_replace(rate(X), "a", "", "b", "")', maxSeries],
    ["a grouped result", "sum by (c) (rate(X))", maxSeries],
    ["one side", "rate(X) / 2", maxInnerSeries],
    ["a choice", "topk(1, rate(X))", maxInnerSeries],
    ["a sort that is counted", "count(sort(rate(X)))", maxInnerSeries],
    ["a deviation", "stddev(rate(X))", maxInnerSeries],
    ["averages over time", "avg by (c) (avg_over_time(Y))", maxInnerSeries],
    ["groups under a choice", "topk(1, sum by (c) (rate(X)))", maxInnerSeries],
    ["groups of averages", "topk(1, avg_over_time(Y) by (c))", maxInnerSeries],
    ["a count that is renamed", 'label_replace(count(rate(X)), "a", "", "b", "")', maxInnerSeries],
  ])("limits the series of %s: %s", (_name, query, want) => {
    const text = query.replaceAll("X", '{a="b"} | json [1s]');
    const { leaves } = plan(text.replaceAll("Y", '{a="b"} | json | unwrap v [1s]'));
    expect(leaves.map((leaf) => leaf.maxSeries)).toEqual([want]);
  });

  it.each([
    ["count_over_time(X | line_format `a` [1s])", []],
    ["count_over_time(X | line_format `a` | b=`c` | drop d [1s])", ["label_filter", "drop"]],
    ["sum_over_time(X | line_format `a` | decolorize | unwrap c [1s])", ["decolorize"]],
    ["bytes_rate(X | line_format `a` | line_format `b` [1s])", ["line_format"]],
    [
      "bytes_over_time(X | line_format `a` | line_format `{{ __line__ }}b` [1s])",
      ["line_format", "line_format"],
    ],
    ["rate(X | line_format `a` |= `b` [1s])", ["line_format", "line_filter"]],
    ["rate(X | line_format `a` | json [1s])", ["line_format", "json"]],
    ["rate(X |= `b` | line_format `a` [1s])", ["line_filter"]],
    [
      "rate(X | line_format `a` | label_format c=`{{ __line__ }}` [1s])",
      ["line_format", "label_format"],
    ],
    ["rate(X | line_format `a` | label_format c=`{{ .d }}` [1s])", ["label_format"]],
  ])("makes no line that nothing reads: %s", (query, kinds) => {
    const { leaves } = plan(query.replace("X", '{a="b"}'));
    expect(leaves[0]?.stages.map(({ kind }) => kind)).toEqual(kinds);
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
