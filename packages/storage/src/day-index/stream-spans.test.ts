import { describe, expect, it } from "@jest/globals";
import { testRuns } from "@skald/testkit";
import fc from "fast-check";
import { type Span, separateRuns, sharingRuns } from "./stream-counts.js";

interface Marked extends Span {
  readonly marks: Uint32Array | undefined;
}

const span = fc.record({
  min: fc.nat(30),
  length: fc.nat(8),
  marks: fc.option(fc.array(fc.nat(40), { minLength: 1, maxLength: 3 }), { nil: undefined }),
});
const spans = fc.array(span, { maxLength: 12 }).map((list) =>
  list.map(
    ({ min, length, marks }, run): Marked => ({
      ...{ run, min, max: min + length },
      marks: marks === undefined ? undefined : Uint32Array.from(new Set(marks)),
    }),
  ),
);

const doMeet = (a: Span, b: Span) => a !== b && a.min <= b.max && b.min <= a.max;

describe("the spans of a stream", () => {
  it("share times where any other one has them", () => {
    fc.assert(
      fc.property(spans, (list) => {
        const want = list.filter((one) => list.some((other) => doMeet(one, other)));
        const sorted = [...list];
        expect([...sharingRuns(sorted)].sort()).toEqual(want.map(({ run }) => run).sort());
        expect(sorted.every(({ min }, i) => i === 0 || sorted[i - 1]!.min <= min)).toBe(true);
      }),
      { numRuns: testRuns(300) },
    );
  });

  it("are apart only where every one that they meet has other marks, and where no mark occurs twice", () => {
    fc.assert(
      fc.property(spans, (list) => {
        list.sort((a, b) => a.min - b.min);
        const found = separateRuns(list, ({ marks }) => marks);
        for (const one of list) {
          const isTold = found.includes(one.run);
          const differs = (other: Marked) =>
            other.marks !== undefined && !other.marks.some((mark) => one.marks?.includes(mark));
          const met = list.filter((other) => doMeet(one, other));
          if (isTold) expect([one.marks !== undefined, met.every(differs)]).toEqual([true, true]);
          const isAny = list.every(
            (other) => other === one || other.marks === undefined || differs(other),
          );
          const isBare = met.some(({ marks }) => marks === undefined);
          expect(isTold).toBe(one.marks !== undefined && isAny && !isBare);
        }
      }),
      { numRuns: testRuns(300) },
    );
  });
});
