import { describe, expect, it } from "@jest/globals";
import { testRuns } from "@skald/testkit";
import fc from "fast-check";
import { CellTable } from "./cells.js";

describe("CellTable", () => {
  it("gives each pair of series and bucket one cell, and orders them", () => {
    const pair = fc.tuple(fc.nat(30), fc.nat(60));
    fc.assert(
      fc.property(fc.array(pair, { maxLength: 3000, size: "max" }), (pairs) => {
        const cells = new CellTable("count", 10_000);
        const counts = new Map<number, number>();
        for (const [series, bucket] of pairs) {
          // The columns may grow in find, so it comes before the look at them.
          const cell = cells.find(series, bucket);
          cells.rows[cell]! += 1;
          counts.set(series * 100 + bucket, (counts.get(series * 100 + bucket) ?? 0) + 1);
        }
        const order = [...cells.order()];
        const keys = order.map((cell) => cells.series[cell]! * 100 + cells.bucket[cell]!);
        expect(keys).toEqual([...counts.keys()].sort((a, b) => a - b));
        expect(order.map((cell) => cells.rows[cell])).toEqual(keys.map((key) => counts.get(key)));
      }),
      { numRuns: testRuns(60) },
    );
  });

  it("refuses more cells than it may have", () => {
    const cells = new CellTable("count", 3);
    for (const bucket of [0, 1, 2, 1]) cells.find(7, bucket);
    expect(() => cells.find(7, 3)).toThrow("the query needs more than 3 samples in memory");
  });
});
