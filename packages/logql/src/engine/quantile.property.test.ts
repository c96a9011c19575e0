import { describe, expect, it } from "@jest/globals";
import { testRuns } from "@skald/testkit";
import fc from "fast-check";
import { Budget } from "../plan/budget.js";
import { quantiles } from "./window-function.js";

const value = fc.oneof(
  { weight: 8, arbitrary: fc.integer({ min: -50, max: 50 }).map((n) => n + 0) },
  { weight: 4, arbitrary: fc.double({ noNaN: true, min: 1, max: 1e6 }) },
  { weight: 1, arbitrary: fc.constant(Number.NaN) },
);

function naive(q: number, values: readonly number[]): number {
  const order = (a: number) => (Number.isNaN(a) ? Number.NEGATIVE_INFINITY : a);
  const sorted = [...values].sort((a, b) => order(a) - order(b) || 0);
  const rank = q * (sorted.length - 1);
  const lower = Math.floor(rank);
  const upper = Math.min(lower + 1, sorted.length - 1);
  return sorted[lower]! * (1 - (rank - lower)) + sorted[upper]! * (rank - lower);
}

/** Counts the values that are copied to be sorted or selected from. */
class CountedValues extends Float64Array {
  copied = 0;

  override slice(from = 0, to = this.length): Float64Array<ArrayBuffer> {
    this.copied += to - from;
    return Float64Array.from(this.subarray(from, to));
  }
}

describe("quantiles", () => {
  it("are those of each window sorted on its own", () => {
    const input = fc.record({
      values: fc.array(value, { minLength: 1, maxLength: 600, size: "max" }),
      width: fc.constantFrom(1, 5, 60, 200, 400),
      step: fc.constantFrom(1, 7, 90, 300),
      q: fc.oneof(fc.constantFrom(0, 0.5, 0.99, 1), fc.double({ min: 0, max: 1, noNaN: true })),
    });
    fc.assert(
      fc.property(input, ({ values, width, step, q }) => {
        const quantile = quantiles(q, Float64Array.from(values), new Budget());
        for (let from = 0, point = 0; from < values.length; from += step, point++) {
          const to = Math.min(from + width, values.length);
          expect(quantile(from, to, point)).toBe(naive(q, values.slice(from, to)));
        }
      }),
      { numRuns: testRuns(60) },
    );
  });

  it.each([
    [-0.1, Number.NEGATIVE_INFINITY],
    [1.1, Number.POSITIVE_INFINITY],
    [Number.NaN, Number.NaN],
  ])("q = %p gives %p", (q, want) => {
    expect(quantiles(q, Float64Array.of(1, 2), new Budget())(0, 2, 0)).toBe(want);
  });

  it("look at few values again for long windows at many points", () => {
    const values = new CountedValues(200_000).map((_, i) => (i * 7919) % 100_003) as CountedValues;
    const quantile = quantiles(0.5, values, new Budget());
    for (let point = 0; point < 5000; point++) quantile(point * 20, point * 20 + 100_000, point);
    expect(values.copied).toBeLessThanOrEqual(2 * values.length);
  });
});
