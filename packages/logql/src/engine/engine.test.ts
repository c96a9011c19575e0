import { describe, expect, it } from "@jest/globals";
import { formatLabels } from "@skald/model";
import { formatSample } from "../go/numbers.js";
import { defaultQueryLimits, type QueryLimits } from "../plan/budget.js";
import type { LeafPlan, QueryParams } from "../plan/plan.js";
import { parseQuery } from "../syntax/parser.js";
import type { PlainRow } from "../testing/memory-block.js";
import { oneSource, runQuery } from "../testing/run-query.js";

const t0 = 1_700_006_400_000_000_000n;
const at = (seconds: number) => t0 + BigInt(Math.round(seconds * 1e9));

const rows: PlainRow[] = [
  ...["a", "b", "c"].flatMap((part, k) =>
    Array.from({ length: k + 2 }, (_, i) => ({
      labels: { app: "edge", part },
      ts: at(10 * i + k),
      line: "x".repeat(k + 1),
      metadata: { v: String(i * (k + 1)) },
    })),
  ),
];

function params(over: Partial<QueryParams> = {}): QueryParams {
  return {
    startNs: at(0),
    endNs: at(60),
    stepNs: 0n,
    limit: 10,
    direction: "backward",
    intervalNs: 0n,
    ...over,
  };
}

/** Lines such as `{part="a"} 2`; for a matrix `{part="a"} 2@0 3@1` with the numbers of the points. */
function answer(query: string, over: Partial<QueryParams> = {}, limits?: QueryLimits): string[] {
  const result = runQuery(parseQuery(query), rows, params(over), oneSource, limits);
  switch (result.kind) {
    case "scalar":
      return [formatSample(result.value)];
    case "vector":
      return result.samples.map(
        ({ labels, value }) => `${formatLabels(labels)} ${formatSample(value)}`,
      );
    case "matrix":
      return result.series.map(({ labels, at: points, values }) =>
        [
          formatLabels(labels),
          ...[...values].map((v, i) => `${formatSample(v)}@${points[i]}`),
        ].join(" "),
      );
    case "streams":
      throw new Error("a log query");
  }
}

const byPart = 'sum by (part) (count_over_time({app="edge"}[2m]))';

describe("evaluate", () => {
  it.each([
    ["a literal", "1 + 2", ["3"]],
    ["a literal comparison", "2 > bool 3", ["0"]],
    ["a constant vector", "vector(2) * 3", ["{} 6"]],
    ["a count per group", byPart, ['{part="a"} 2', '{part="b"} 3', '{part="c"} 4']],
    ["a filter", `${byPart} >= 3`, ['{part="b"} 3', '{part="c"} 4']],
    ["a filter by a literal on the left", `3 < ${byPart}`, ['{part="c"} 4']],
    ["bool", `3 < bool ${byPart}`, ['{part="a"} 0', '{part="b"} 0', '{part="c"} 1']],
    ["sort", `sort(${byPart})`, ['{part="a"} 2', '{part="b"} 3', '{part="c"} 4']],
    ["sort_desc", `sort_desc(${byPart})`, ['{part="c"} 4', '{part="b"} 3', '{part="a"} 2']],
    [
      "a sorted operand",
      `sort_desc(${byPart}) * -1`,
      ['{part="c"} -4', '{part="b"} -3', '{part="a"} -2'],
    ],
    ["topk by labels", `topk(2, ${byPart})`, ['{part="b"} 3', '{part="c"} 4']],
    ["bottomk", `bottomk(1, ${byPart})`, ['{part="a"} 2']],
    ["approx_topk", `approx_topk(1, ${byPart})`, ['{part="c"} 4']],
    ["a label that nobody has", 'sum by (nosuch) (count_over_time({app="edge"}[2m]))', ["{} 9"]],
    ["no rows", 'sum(count_over_time({app="none"}[2m]))', []],
    ["no rows or a constant", 'sum(count_over_time({app="none"}[2m])) or vector(0)', ["{} 0"]],
    ["absent", 'absent_over_time({app="none", part!="x"}[2m])', ['{app="none"} 1']],
    ["absent with a name twice", 'absent_over_time({app="none", app=~".+"}[2m])', ["{} 1"]],
    ["present", 'absent_over_time({app="edge"}[2m])', []],
    ["bytes", 'sum(bytes_over_time({app="edge"}[2m]))', ["{} 20"]],
    [
      "a quantile",
      'quantile_over_time(0.5, {part="c"} | unwrap v [2m]) by (part)',
      ['{part="c"} 4.5'],
    ],
    [
      "a quantile above 1",
      'quantile_over_time(2, {part="c"} | unwrap v [2m]) by (part)',
      ['{part="c"} +Inf'],
    ],
    ["a range of 0", 'count_over_time({app="edge"}[0])', []],
    [
      "a copied label",
      `${byPart} * on (part) group_left (team) label_replace(${byPart}, "team", "t-$1", "part", "(b)")`,
      ['{part="a"} 4', '{part="b", team="t-b"} 9', '{part="c"} 16'],
    ],
  ])("%s", (_, query, want) => {
    expect(answer(query)).toEqual(want);
  });

  it.each([
    ["left-open, right-closed windows", 'sum(count_over_time({part="a"}[10s]))', ["{} 1@0 1@1"]],
    ["a literal", "1 + 1", ["{} 2@0 2@1 2@2 2@3"]],
    ["absence", 'absent_over_time({part="a"}[10s])', ['{part="a"} 1@2 1@3']],
    [
      "topk per point",
      'topk(1, sum by (part) (bytes_over_time({app="edge"}[11s])))',
      ['{part="a"} 1@0', '{part="c"} 3@1 3@2 3@3'],
    ],
  ])("over a range: %s", (_, query, want) => {
    expect(answer(query, { endNs: at(30), stepNs: 10_000_000_000n })).toEqual(want);
  });

  it.each([
    [
      `sum by (app) (count_over_time({app="edge"}[2m])) / on (app) sum by (app, part) (count_over_time({app="edge"}[2m]))`,
      "found duplicate series on the right hand-side;many-to-many matching not allowed: matching labels must be unique on one side",
    ],
    [
      `sum by (app, part) (count_over_time({app="edge"}[2m])) / on (app) sum by (app) (count_over_time({app="edge"}[2m]))`,
      "multiple matches for labels: many-to-one matching must be explicit (group_left/group_right)",
    ],
    [
      `sum by (app, part) (count_over_time({app="edge"}[2m])) / on (app) group_left (part) sum by (app) (count_over_time({app="edge"}[2m]))`,
      "multiple matches for labels: grouping labels must ensure unique matches",
    ],
  ])("refuses %s", (query, message) => {
    expect(() => answer(query)).toThrow(message);
  });

  describe("the series limit", () => {
    const two: QueryLimits = { ...defaultQueryLimits, maxSeries: 2 };
    const message =
      "maximum number of series (2) reached for a single query; consider reducing query cardinality by adding more specific stream selectors, reducing the time range, or aggregating results with functions like sum(), count() or topk()";

    it.each([byPart, `${byPart} + 1`, `${byPart} + ${byPart}`])("refuses %s", (query) => {
      expect(() => answer(query, {}, two)).toThrow(message);
    });

    it("counts the series of the result alone", () => {
      expect(answer(`count(${byPart})`, {}, two)).toEqual(["{} 3"]);
    });

    it.each(["avg by (method) (X)", "sum by (method) (X)", "1000 * avg by (method) (X)"])(
      "does not count the lines whose latencies %s averages",
      (query) => {
        const lines = Array.from({ length: 1000 }, (_, i) => ({
          labels: { app: "edge" },
          ts: at(i / 100),
          line: JSON.stringify({ method: i % 2 === 0 ? "GET" : "PUT", id: `${i}`, latency_ms: i }),
        }));
        const of = 'avg_over_time({app="edge"} | json | unwrap latency_ms [10m])';
        const result = runQuery(parseQuery(query.replace("X", of)), lines, params());
        if (result.kind !== "vector") throw new Error("no vector");
        const times = query.startsWith("sum") ? 500 : query.startsWith("1000") ? 1000 : 1;
        expect(result.samples.map(({ value }) => value)).toEqual([499 * times, 500 * times]);
      },
    );

    it("cuts the answer with a warning when asked to", () => {
      const limits: QueryLimits = { ...two, onTooManySeries: "truncate" };
      const result = runQuery(parseQuery(byPart), rows, params(), oneSource, limits);
      if (result.kind !== "vector") throw new Error("no vector");
      expect(result.samples.map(({ value }) => value)).toEqual([2, 3]);
      expect(result.warnings).toEqual([
        "maximum number of series (2) reached for a single query; returning partial results",
      ]);
    });
  });

  it.each([
    [1, "quantile_over_time(0.5, X) or quantile_over_time(0.9, X) or rate_counter(X)"],
    [1, "sum_over_time(X) / rate(X) + sum_over_time(X)"],
    [2, "max_over_time(X) - min_over_time(X) + max_over_time(X)"],
    [3, "max_over_time(X) - min_over_time(X) + sum(sum_over_time(X))"],
  ])("scans %i times for %s", (times, query) => {
    const scanned: number[] = [];
    const layout = { ...oneSource, onScan: ({ id }: LeafPlan) => void scanned.push(id) };
    const text = query.replaceAll("X", '{app="edge"} | unwrap v [2m]');
    runQuery(parseQuery(text), rows, params(), layout);
    expect(scanned).toEqual(Array.from({ length: times }, (_, id) => id));
  });

  it("refuses to hold more than the plan allows", () => {
    const limits: QueryLimits = { ...defaultQueryLimits, maxCells: 4 };
    const ask = (query: string) => () =>
      answer(query, { endNs: at(30), stepNs: 1_000_000_000n }, limits);
    expect(ask(byPart)).toThrow("the query needs more than 4 samples in memory");
    expect(ask('quantile_over_time(0.5, {part="c"} | unwrap v [1h]) by (app)')).toThrow(
      "more than 4 samples",
    );
  });
});
