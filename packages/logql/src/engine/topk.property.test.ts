import { describe, expect, it } from "@jest/globals";
import { compareLabels, formatLabels, labelsFromObject } from "@skald/model";
import fc from "fast-check";
import { Budget } from "../plan/budget.js";
import type { PlanNode, SeriesMatrix } from "../plan/plan.js";
import type { VectorAggregation } from "../syntax/ast.js";
import { keepExtremeSeries } from "./aggregate.js";

const sample = fc.option(
  fc.oneof(fc.integer({ min: -3, max: 3 }), fc.constantFrom(Number.NaN, 1 / 0, -1 / 0)),
  { freq: 3 },
);
const matrix: fc.Arbitrary<SeriesMatrix> = fc
  .array(fc.tuple(sample, sample), { maxLength: 40, size: "max" })
  .map((rows) => ({
    pointCount: 2,
    labels: rows.map((_, i) => labelsFromObject({ n: `${(i * 17) % 41}`, g: `${i % 3}` })),
    values: rows.map((row) => Float64Array.from(row, (value) => value ?? 0)),
    present: rows.map((row) => Uint8Array.from(row, (value) => (value === null ? 0 : 1))),
  }));
const node: fc.Arbitrary<VectorAggregation<PlanNode>> = fc.record({
  kind: fc.constant("vector_aggregation" as const),
  op: fc.constantFrom("topk" as const, "bottomk" as const),
  parameter: fc.integer({ min: 1, max: 12 }),
  grouping: fc.constantFrom({ without: false, labels: [] }, { without: false, labels: ["g"] }),
  inner: fc.constant({ kind: "vector" as const, value: 1 }),
});

/** Labels and value of the samples kept at a point, in order. */
function naive(
  { op, parameter, grouping }: VectorAggregation<PlanNode>,
  input: SeriesMatrix,
  point: number,
): string[] {
  const sign = op === "topk" ? -1 : 1;
  const rank = (s: number) => sign * (input.values[s]![point] as number);
  const all = input.labels.map((_, s) => s).filter((s) => input.present[s]![point] === 1);
  all.sort((a, b) => {
    const [left, right] = [rank(a), rank(b)];
    const byNan = Number(Number.isNaN(left)) - Number(Number.isNaN(right));
    if (byNan !== 0) return byNan;
    if (left !== right && !Number.isNaN(left)) return left < right ? -1 : 1;
    return compareLabels(input.labels[a]!, input.labels[b]!);
  });
  const groups = new Map<string, number>();
  const kept = all.filter((s) => {
    const group = grouping?.labels.length === 0 ? "" : (input.labels[s]!.values[0] as string);
    const count = (groups.get(group) ?? 0) + 1;
    groups.set(group, count);
    return count <= (parameter as number);
  });
  return shown(input, kept, point);
}

function shown(input: SeriesMatrix, series: readonly number[], point: number): string[] {
  return series.map((s) => `${formatLabels(input.labels[s]!)} ${input.values[s]![point]}`).sort();
}

const seed = Number(process.env.SEED ?? 1_700_006_401);

describe("topk and bottomk", () => {
  it(`keep the samples that stand first when all are sorted (seed ${seed})`, () => {
    fc.assert(
      fc.property(node, matrix, (asked, input) => {
        const got = keepExtremeSeries(asked, input, new Budget());
        for (const point of [0, 1]) {
          const there = got.labels.map((_, s) => s).filter((s) => got.present[s]![point] === 1);
          expect(shown(got, there, point)).toEqual(naive(asked, input, point));
        }
      }),
      { seed, numRuns: 500 },
    );
  });
});
