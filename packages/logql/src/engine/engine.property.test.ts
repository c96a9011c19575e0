import { describe, expect, it } from "@jest/globals";
import { formatLabels, labelsFromObject, SkaldError } from "@skald/model";
import { testRuns } from "@skald/testkit";
import fc from "fast-check";
import { defaultQueryLimits } from "../plan/budget.js";
import type { QueryParams, QueryResult } from "../plan/plan.js";
import { parseQuery } from "../syntax/parser.js";
import type { PlainRow } from "../testing/memory-block.js";
import { NaiveMatchError } from "../testing/naive/binary.js";
import { evaluateNaively } from "../testing/naive/engine.js";
import type { NaiveValue } from "../testing/naive/labels.js";
import { type Layout, runQuery } from "../testing/run-query.js";

const second = 1_000_000_000n;
// Just before midnight, so that rows and windows span two days.
const t0 = 1_700_006_400n * second - 60n * second;

// Half seconds, and one nanosecond to either side of them: the edges of windows.
const time = fc
  .record({ half: fc.integer({ min: 0, max: 240 }), nudge: fc.integer({ min: -1, max: 1 }) })
  .map(({ half, nudge }) => t0 + BigInt(half) * (second / 2n) + BigInt(nudge));

const row: fc.Arbitrary<PlainRow> = fc.record({
  labels: fc
    .record({ app: fc.constantFrom("a", "b"), env: fc.constantFrom("x", "y", "") })
    .map(({ app, env }) => (env === "" ? { app } : { app, env })),
  ts: time,
  line: fc.constantFrom("", "hit", "a longer hit", "miss"),
  metadata: fc.record(
    {
      v: fc.oneof(
        { weight: 20, arbitrary: fc.integer({ min: -3, max: 9 }).map(String) },
        { weight: 1, arbitrary: fc.constantFrom("NaN", "Infinity") },
      ),
      level: fc.constantFrom("info", "error"),
      env: fc.constantFrom("meta", "x"),
    },
    { requiredKeys: [] },
  ),
});

const rows = fc.uniqueArray(row, { selector: (one) => one.ts, maxLength: 80, size: "max" });

const range = fc.constantFrom("1s", "2s", "7s", "10s", "15s", "30s", "1m", "500ms");
const offset = fc.constantFrom("", "", " offset 3s", " offset -5s");
const selector = fc.constantFrom(
  '{app="a"}',
  '{app=~".+"}',
  '{app=~".+"} |= "hit"',
  '{app="none"}',
);
const grouping = fc.constantFrom(
  "",
  " by (app)",
  " by (app, level)",
  " by (app, env_extracted)",
  " without (env, v)",
  " by ()",
);

const counted = fc
  .tuple(
    fc.constantFrom("count_over_time", "rate", "bytes_over_time", "bytes_rate"),
    selector,
    range,
    offset,
  )
  .map(([op, of, over, shift]) => `${op}(${of} [${over}]${shift})`);
const summed = fc
  .tuple(fc.constantFrom("sum_over_time", "rate"), selector, range, offset)
  .map(([op, of, over, shift]) => `${op}(${of} | unwrap v [${over}]${shift})`);
const unwrapped = fc
  .tuple(
    fc.constantFrom(
      "avg_over_time(",
      "min_over_time(",
      "max_over_time(",
      "first_over_time(",
      "last_over_time(",
    ),
    selector,
    range,
    offset,
    grouping,
  )
  .map(([op, of, over, shift, by]) => `${op}${of} | unwrap v [${over}]${shift})${by}`);
const inexact = fc
  .tuple(
    fc.constantFrom(
      "stddev_over_time(",
      "stdvar_over_time(",
      "quantile_over_time(0.37,",
      "quantile_over_time(0.9,",
    ),
    selector,
    range,
    offset,
    grouping,
  )
  .map(([op, of, over, shift, by]) => `${op}${of} | unwrap v [${over}]${shift})${by}`);
const other = fc
  .tuple(selector, range, offset)
  .chain(([of, over, shift]) =>
    fc.constantFrom(
      `rate_counter(${of} | unwrap v [${over}]${shift})`,
      `absent_over_time(${of} [${over}]${shift})`,
    ),
  );
const exact = fc.oneof(counted, summed, unwrapped);

const aggregated = fc
  .tuple(
    fc.constantFrom("sum", "avg", "min", "max", "count", "stddev", "stdvar"),
    grouping,
    fc.oneof(exact, counted, summed, unwrapped),
  )
  .map(([op, by, inner]) => `${op}${by}(${inner})`);
const chosen = fc
  .tuple(fc.constantFrom("topk(1,", "topk(2,", "bottomk(1,"), fc.oneof(exact, exact))
  .map(([op, inner]) => `${op}${inner})`);
const exactVector = fc.oneof(
  exact,
  fc
    .tuple(fc.constantFrom("sum", "max", "count"), grouping, exact)
    .map(([op, by, inner]) => `${op}${by}(${inner})`),
  fc.constant("vector(3)"),
);
const operator = fc.constantFrom("+", "-", "*", "/", "%", "==", "!=", ">", ">= bool", "<");
const matching = fc.constantFrom(
  "",
  "",
  " on (app)",
  " ignoring (env, level, v)",
  " on (app) group_left ()",
  " on (app) group_right (level)",
);
const binary = fc
  .oneof(
    fc.tuple(exactVector, operator, matching, exactVector),
    fc.tuple(
      exactVector,
      fc.constantFrom("and", "or", "unless"),
      fc.constantFrom("", " on (app)", " ignoring (level)"),
      exactVector,
    ),
    fc.tuple(exactVector, operator, fc.constant(""), fc.constantFrom("2", "0")),
    fc.tuple(fc.constantFrom("2", "0"), operator, fc.constant(""), exactVector),
  )
  .map(([left, op, how, right]) => `(${left}) ${op}${how} (${right})`);
/** Two functions of what one scan gives. */
const shared = fc
  .tuple(
    fc.constantFrom(
      ["count_over_time(", "rate(", ""],
      ["bytes_rate(", "count_over_time(", ""],
      ["rate(", "bytes_over_time(", ""],
      ["sum_over_time(", "rate(", " | unwrap v"],
      ["avg_over_time(", "sum_over_time(", " | unwrap v"],
      ["stddev_over_time(", "stdvar_over_time(", " | unwrap v"],
      ["quantile_over_time(0.37,", "quantile_over_time(0.9,", " | unwrap v"],
      ["quantile_over_time(0.37,", "rate_counter(", " | unwrap v"],
      ["max_over_time(", "max_over_time(", " | unwrap v"],
    ),
    selector,
    range,
    offset,
    fc.constantFrom("+", "/", ">", "or", "unless"),
    fc.constantFrom("", "sum by (app)", "count"),
  )
  .map(([[first, second, unwrap], of, over, shift, op, outer]) => {
    const log = `${of}${unwrap} [${over}]${shift}`;
    return `${outer}(${first}${log})) ${op} ${outer}(${second}${log}))`;
  });
const query = fc.oneof(
  counted,
  summed,
  unwrapped,
  inexact,
  other,
  aggregated,
  chosen,
  binary,
  shared,
);

const params: fc.Arbitrary<QueryParams> = fc
  .record({
    start: fc.integer({ min: -20, max: 100 }),
    length: fc.integer({ min: 0, max: 60 }),
    step: fc.constantFrom(0n, second, 2n * second, 3n * second, 7n * second, 20n * second),
  })
  .map(({ start, length, step }) => ({
    startNs: t0 + BigInt(start) * second,
    endNs: t0 + BigInt(start + length) * second,
    stepNs: step,
    limit: 100,
    direction: "backward",
    intervalNs: 0n,
  }));

const layout: fc.Arbitrary<Layout> = fc.record({
  sources: fc.integer({ min: 1, max: 3 }),
  blockRows: fc.constantFrom(3, 10, 1000),
  sealed: fc.boolean(),
  texts: fc.subarray(["hit", "hi", "t", "absent"]),
});

const numRuns = testRuns(250);

describe("the engine", () => {
  it("answers metric queries as the naive engine does", () => {
    fc.assert(
      fc.property(query, rows, params, layout, (text, all, asked, laidOut) => {
        const expr = parseQuery(text);
        if (expr.kind === "log") throw new Error("a log query");
        let want: NaiveValue[] | undefined;
        try {
          want = evaluateNaively(expr, all, asked);
        } catch (error) {
          if (!(error instanceof NaiveMatchError)) throw error;
        }
        if (want === undefined) {
          expect(() => runQuery(expr, all, asked, laidOut)).toThrow(SkaldError);
        } else {
          const got = runQuery(expr, all, asked, laidOut);
          if (got.kind === "streams") throw new Error("a log result");
          expectEqual(byPoint(got), want.map(sampleMap), text);
        }
      }),
      { numRuns },
    );
  });

  const inAll = (inner: string) => [
    ...["sum", "avg", "min", "max", "count", "stddev", "stdvar"].map((op) => `${op}(${inner})`),
    ...["sum", "avg", "max"].map((op) => `${op} by (app) (${inner})`),
    `1000 * avg by (app) (${inner})`,
    `topk(3, ${inner})`,
    `count(sort(${inner}))`,
    `sum(${inner} * 2)`,
    `${inner} > 35`,
    `count(${inner} and ${inner})`,
  ];

  it.each([
    ...["count_over_time(X)", "rate(X)", "bytes_over_time(X)", "bytes_rate(X)"],
    ...["rate(Y)", "sum_over_time(Y)", "avg_over_time(Y)", "min_over_time(Y)", "max_over_time(Y)"],
    ...["stddev_over_time(Y)", "stdvar_over_time(Y)", "quantile_over_time(0.9, Y)"],
    ...["first_over_time(Y)", "last_over_time(Y)", "rate_counter(Y)"],
  ])("aggregates more series of %s than an answer may have", (inner) => {
    const many = Array.from({ length: 40 }, (_, i) => ({
      labels: { app: i % 2 === 0 ? "a" : "b" },
      ts: t0 + BigInt(i) * 1_000_000n,
      line: "x".repeat(i),
      metadata: { id: `${i}`, v: `${i}` },
    }));
    const asked: QueryParams = {
      ...{ startNs: t0, endNs: t0 + second, stepNs: 0n },
      ...{ limit: 100, direction: "backward", intervalNs: 0n },
    };
    const split: Layout = { sources: 2, blockRows: 100, sealed: true };
    const log = '{app=~"a|b"}';
    const full = inner.replace("X", `${log} [1s]`).replace("Y", `${log} | unwrap v [1s]`);
    const ask = (text: string) =>
      runQuery(parseQuery(text), many, asked, split, { ...defaultQueryLimits, maxSeries: 20 });
    expect(() => ask(full)).toThrow("maximum number of series (20)");
    for (const text of inAll(full)) {
      const expr = parseQuery(text);
      if (expr.kind === "log") throw new Error("a log query");
      const got = ask(text);
      if (got.kind === "streams") throw new Error("a log result");
      expectEqual(byPoint(got), evaluateNaively(expr, many, asked).map(sampleMap), text);
    }
  });

  it("leaves excluded rows out", () => {
    fc.assert(
      fc.property(query, rows, params, fc.uniqueArray(fc.nat(60)), (text, all, asked, numbers) => {
        const expr = parseQuery(text);
        const excluded = new Set(numbers);
        const rest = all.filter((_, i) => !excluded.has(i));
        const blocks: Layout = { sources: 1, blockRows: 10, sealed: true };
        const outcome = (list: readonly PlainRow[], laidOut: Layout) => {
          try {
            const result = runQuery(expr, list, asked, laidOut);
            if (result.kind === "streams") throw new Error("a log result");
            return byPoint(result);
          } catch (error) {
            return (error as Error).message;
          }
        };
        const got = outcome(all, { ...blocks, excluded });
        const want = outcome(rest, blocks);
        // Series may be added up in another order, so that their sum differs in its last bits.
        if (typeof got === "string" || typeof want === "string") expect(got).toBe(want);
        else expectEqual(got, want, text);
      }),
      { numRuns: testRuns(80) },
    );
  });
});

type Samples = Map<string, number>;

function sampleMap(value: NaiveValue): Samples {
  if (typeof value === "number") return new Map([["{}", value]]);
  return new Map(
    value.map((sample) => [formatLabels(labelsFromObject(sample.labels)), sample.value]),
  );
}

function byPoint(result: QueryResult): Samples[] {
  if (result.kind === "matrix") {
    const texts = result.series.map(({ labels }) => formatLabels(labels));
    expect(new Set(texts).size).toBe(texts.length);
  }
  if (result.kind === "scalar") return [new Map([["{}", result.value]])];
  if (result.kind === "vector") {
    return [new Map(result.samples.map(({ labels, value }) => [formatLabels(labels), value]))];
  }
  const points: Samples[] = Array.from({ length: result.points.count }, () => new Map());
  for (const { labels, at, values } of result.series) {
    at.forEach((point, i) => {
      points[point]!.set(formatLabels(labels), values[i]!);
    });
  }
  return points;
}

function expectEqual(got: Samples[], want: Samples[], text: string): void {
  expect(got.length).toBe(want.length);
  got.forEach((samples, point) => {
    const where = `${text} at point ${point}`;
    expect([where, [...samples.keys()].sort()]).toEqual([where, [...want[point]!.keys()].sort()]);
    for (const [labels, value] of samples) {
      const wanted = want[point]!.get(labels)!;
      if (!isClose(value, wanted)) throw new Error(`${where} ${labels}: ${value}, not ${wanted}`);
    }
  });
}

function isClose(a: number, b: number): boolean {
  return (
    Object.is(a, b) || a === b || Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(a), Math.abs(b))
  );
}
