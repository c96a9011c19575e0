import { describe, expect, it } from "@jest/globals";
import { testRuns } from "@skald/testkit";
import fc from "fast-check";
import { lastWindowEnd } from "./plan.js";
import { WindowGrid, type WindowSpec } from "./window-grid.js";

const day = 86_400_000_000_000n;
const base = 19_676n * day;

const duration = fc.oneof(
  fc.bigInt({ min: 1n, max: 50n }),
  fc.constantFrom(1_000_000_000n, 60_000_000_000n, 3_600_000_000_000n, day, 365n * day),
);

const spec: fc.Arbitrary<WindowSpec> = fc
  .record({
    start: fc.bigInt({ min: -200n, max: 200n }),
    stepNs: duration,
    count: fc.integer({ min: 1, max: 40 }),
    rangeNs: fc.oneof(fc.constant(0n), duration),
  })
  .map(({ start, stepNs, count, rangeNs }) => {
    const windows = { startNs: base + start - rangeNs, stepNs, count, rangeNs };
    return { windows, fromNs: windows.startNs, toNs: lastWindowEnd(windows) };
  });

/** The numbers of the windows that have a time. */
function windowsOf({ windows }: WindowSpec, time: bigint): number[] {
  return Array.from({ length: windows.count }, (_, i) => i).filter((i) => {
    const begin = windows.startNs + windows.stepNs * BigInt(i);
    return time >= begin && time < begin + windows.rangeNs;
  });
}

/** Times near the edges of windows, relative to the base of a block that has them. */
const near = fc.record({
  window: fc.nat(40),
  edge: fc.constantFrom("begin", "end"),
  nudge: fc.constantFrom(-1n, 0n, 1n),
});

describe("WindowGrid", () => {
  it("puts a time into a bucket of exactly the windows that have it", () => {
    fc.assert(
      fc.property(spec, near, (leaf, { window, edge, nudge }) => {
        const { startNs, stepNs, count, rangeNs } = leaf.windows;
        const begin = startNs + stepNs * BigInt(window);
        const time = (edge === "end" ? begin + rangeNs : begin) + nudge;
        const blockBase = (time / day) * day;
        const grid = new WindowGrid(leaf);
        const cursor = grid.cursor(blockBase);
        cursor.seek(Number(time - blockBase));
        const found = Array.from({ length: count }, (_, i) => i).filter(
          (i) =>
            cursor.bucket >= 0 &&
            cursor.bucket >= grid.firstBucket(i) &&
            cursor.bucket <= grid.lastBucket(i),
        );
        expect(found).toEqual(windowsOf(leaf, time));
        expect(cursor.bucket).toBeLessThan(grid.bucketCount);
      }),
      { numRuns: testRuns(500) },
    );
  });

  it("gives every time between its borders the same bucket", () => {
    fc.assert(
      fc.property(spec, fc.integer({ min: -300, max: 300 }), fc.nat(100), (leaf, first, more) => {
        const cursor = new WindowGrid(leaf).cursor(base);
        cursor.seek(first);
        const { bucket, low, high } = cursor;
        expect(first >= low && first < high).toBe(true);
        const other = first + more;
        cursor.seek(other);
        if (other < high) expect(cursor.bucket).toBe(bucket);
        else if (bucket >= 0) expect(cursor.bucket).not.toBe(bucket);
      }),
      { numRuns: testRuns(400) },
    );
  });

  it("knows the borders to the ns where steps are longer than a number is exact", () => {
    const windows = {
      startNs: base + 177n - 365n * day,
      stepNs: 365n * day,
      count: 2,
      rangeNs: 365n * day,
    };
    const leaf = { windows, fromNs: windows.startNs, toNs: lastWindowEnd(windows) };
    const cursor = new WindowGrid(leaf).cursor(base);
    cursor.seek(147);
    expect([cursor.bucket, cursor.high]).toEqual([0, 177]);
  });

  it("has no bucket for a range of 0", () => {
    const windows = { startNs: base, stepNs: 10n, count: 5, rangeNs: 0n };
    const leaf = { windows, fromNs: base, toNs: base + 40n };
    const cursor = new WindowGrid(leaf).cursor(base);
    cursor.seek(10);
    expect(cursor.bucket).toBe(-1);
  });

  it("takes only the times of its part", () => {
    const windows = { startNs: base + 50n, stepNs: 10n, count: 5, rangeNs: 50n };
    const leaf = { windows, fromNs: base + 71n, toNs: base + 76n };
    const cursor = new WindowGrid(leaf).cursor(base);
    const buckets = [70, 71, 75, 76].map((time) => {
      cursor.seek(time);
      return cursor.bucket;
    });
    expect(buckets).toEqual([-1, 2, 2, -1]);
  });
});
