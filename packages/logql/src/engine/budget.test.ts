import { describe, expect, it } from "@jest/globals";
import { type Labels, labelsFromObject } from "@skald/model";
import { Budget, defaultQueryLimits } from "../plan/budget.js";
import type { MetricPlan, QueryResult, SeriesMatrix } from "../plan/plan.js";
import { planQuery } from "../plan/planner.js";
import { parseQuery } from "../syntax/parser.js";
import { evaluate } from "./engine.js";

const limits = { ...defaultQueryLimits, maxSeries: Number.MAX_SAFE_INTEGER };

function plan(query: string, pointCount: number): MetricPlan {
  const endNs = BigInt(pointCount - 1);
  const params = { startNs: 0n, endNs, stepNs: 1n, limit: 1, intervalNs: 0n } as const;
  const made = planQuery(parseQuery(query), { ...params, direction: "forward" }, limits);
  if (made.kind !== "metric") throw new Error("a log plan");
  return made;
}

/** Series with the labels and the value that are given of their number. */
function series(
  count: number,
  pointCount: number,
  labelsOf: (s: number) => Record<string, string>,
  present: (s: number, point: number) => boolean = () => true,
): SeriesMatrix {
  const numbers = Array.from({ length: count }, (_, s) => s);
  const points = Array.from({ length: pointCount }, (_, p) => p);
  return {
    pointCount,
    labels: numbers.map((s): Labels => labelsFromObject(labelsOf(s))),
    values: numbers.map((s) => Float64Array.from(points, (p) => (s * 7919 + p) % count)),
    present: numbers.map((s) => Uint8Array.from(points, (p) => (present(s, p) ? 1 : 0))),
  };
}

/** The result of a query whose selectors `{a="0"}`, `{a="1"}` gave these series, and what it cost. */
function run(query: string, given: readonly SeriesMatrix[], budget = new Budget()): QueryResult {
  const made = plan(query, given[0]!.pointCount);
  const leaves = made.leaves.map(
    ({ id, matchers }) => [id, [given[Number(matchers[0]?.value)] as SeriesMatrix]] as const,
  );
  return evaluate(made, new Map(leaves), budget);
}

function stepsOf(query: string, given: readonly SeriesMatrix[]): number {
  const budget = new Budget();
  run(query, given, budget);
  return budget.steps;
}

const [left, right] = [0, 1].map((a) => `last_over_time({a="${a}"} | unwrap v [1s])`);
const name = (s: number) => ({ n: `series-${s}` });
const group = (s: number) => ({ n: `series-${s}`, g: "g" });

describe("the work of a query", () => {
  it.each([
    ["topk(10, X)", 4],
    ["topk(2500, X)", 30],
    ["bottomk(4999, X)", 30],
    ["count(topk(2500, X))", 30],
    ["sort(X)", 40],
    ["sum(X)", 10],
    ["sum by (n) (X)", 12],
    ["X > 5", 12],
    ['label_replace(X, "m", "$1", "n", "(.*)")', 50],
  ])("%s takes no more steps than series times %i and points", (query, factor) => {
    const [count, points] = [5000, 7];
    const given = [series(count, points, name)];
    const steps = stepsOf(query.replace("X", left as string), given);
    expect(steps).toBeLessThan(count * points * factor);
  });

  it.each([
    "X / Y",
    "X / on (n) Y",
    "X / ignoring (g) Y",
    "X * on (n) group_left (g) Y",
    "X * on (n) group_right Y",
    "X and Y",
    "X or on (n) Y",
    "X unless on (n) Y",
  ])("%s grows with the series of both sides together", (query) => {
    const text = query.replace("X", left as string).replace("Y", right as string);
    const given = (count: number) => [
      series(count, 2, name),
      series(count, 2, query.includes("(") ? group : name),
    ];
    const small = stepsOf(text, given(500));
    const large = stepsOf(text, given(8000));
    // sorting the answer takes a logarithm more
    expect(large / small).toBeLessThan(16 * 1.6);
  });

  it("joins series of one signature that share no point without trying all pairs", () => {
    const count = 1000;
    const given = [
      series(1, count, () => ({ a: "x" })),
      series(count, count, name, (s, point) => s === point),
    ];
    expect(stepsOf(`${left} * on () ${right}`, given)).toBeLessThan(count * count * 3);
    const turned = `${right} * on () group_left ${left}`;
    expect(stepsOf(turned, given)).toBeLessThan(count * count * 5);
  });

  it("does not depend on how many labels are named", () => {
    const given = [series(2000, 1, name)];
    const many = Array.from({ length: 5000 }, (_, i) => `l${i}`).join(", ");
    const named = stepsOf(`sum by (n, ${many}) (${left})`, given);
    expect(named).toBeLessThan(stepsOf(`sum by (n) (${left})`, given) * 1.1);
  });

  it("stops soon after it is told to", () => {
    for (const query of ["topk(10, X)", "sort(X)", "sum by (n) (X)", "X / X", "X or X"]) {
      let asked = 0;
      const budget = new Budget({ shouldStop: () => ++asked === 3 });
      const text = query.replaceAll("X", left as string);
      const stopped = () => run(text, [series(5000, 2, name)], budget);
      expect(stopped).toThrow(expect.objectContaining({ code: "cancelled" }));
      expect(budget.steps).toBeLessThan(25_000);
    }
  });
});

describe("the memory of a query", () => {
  it("is bounded", () => {
    const budget = new Budget({ maxBytes: 100_000 });
    const given = [series(1000, 2, name)];
    expect(() => run(`${left} + 1`, given, budget)).toThrow(
      "the query needs more than 100000 bytes of memory (limit: max_query_memory_bytes); narrow the time range",
    );
  });

  it("is counted for all queries together too", () => {
    let held = 0;
    const memory = {
      take: (bytes: number) => {
        held += bytes;
        if (held > 50_000) throw new Error("no more for anybody");
      },
      give: (bytes: number) => {
        held -= bytes;
      },
    };
    const budget = new Budget({ memory });
    run(`count(${left} + 1)`, [series(100, 2, name)], budget);
    expect([held > 0, held]).toEqual([true, budget.bytes]);
    expect(() => run(`${left} + 1`, [series(1000, 2, name)], new Budget({ memory }))).toThrow(
      "no more for anybody",
    );
  });

  it("counts what an operation made until the next one has used it", () => {
    const given = [series(1000, 2, name)];
    const most = (query: string) => {
      const budget = new Budget();
      run(query, given, budget);
      return budget.mostBytes;
    };
    const one = most(`${left} + 1`);
    expect(most(`${left}${" + 1".repeat(20)}`)).toBe(2 * one);
    expect(most(`count(${left} + 1)`)).toBeLessThan(one * 1.1);
  });

  it("holds the values of nested label_replace within its bounds", () => {
    const query = Array.from({ length: 40 }).reduce<string>(
      (inner) => `label_replace(${inner}, "n", "$1$1", "n", "(.*)")`,
      left as string,
    );
    const budget = new Budget({ maxBytes: 1_000_000 });
    expect(() => run(query, [series(10, 1, name)], budget)).toThrow(
      expect.objectContaining({
        code: "invalid_argument",
        message: expect.stringContaining("the query needs more than 1000000 bytes of memory"),
      }),
    );
    expect(budget.steps).toBeLessThan(10_000_000);
  });
});

describe("equal series", () => {
  const replace = (inner: string) => `label_replace(${inner}, "n", "same", "n", ".*")`;
  const given = [series(3, 2, name)];

  it("are merged by an aggregation", () => {
    for (const query of [
      `sum by (n) (${replace(left as string)})`,
      `sum(${replace(left as string)} * 1)`,
      `sum(topk(2, ${replace(left as string)}) or vector(0))`,
    ]) {
      expect(run(query, given)).toMatchObject({ series: [expect.anything()] });
    }
    expect(run(`sum by (n) (${replace(left as string)})`, given)).toMatchObject({
      series: [{ values: Float64Array.of(3, 3) }],
    });
  });

  it("are refused in a result", () => {
    for (const query of [replace(left as string), `${replace(left as string)} + 1`]) {
      expect(() => run(query, given)).toThrow('label_replace gives duplicate series {n="same"}');
    }
  });

  it("are one in a result where they share no point", () => {
    const apart = series(2, 2, name, (s, point) => s === point);
    expect(run(replace(left as string), [apart])).toMatchObject({
      series: [{ labels: { values: ["same"] }, at: Uint32Array.of(0, 1) }],
    });
  });

  it("cannot be matched one to one", () => {
    expect(() => run(`${replace(left as string)} / ${left}`, given)).not.toThrow();
    expect(() => run(`vector(1) + on () ${replace(left as string)}`, given)).toThrow(
      "found duplicate series on the right hand-side",
    );
  });
});
