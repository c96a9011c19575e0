import { describe, expect, it } from "@jest/globals";
import { exclusionBytes, noExclusions, uniteExclusions } from "./exclusions.js";

const exclusions = (rows: Readonly<Record<number, readonly number[]>>) => ({
  blocks: Uint32Array.from(Object.keys(rows), Number),
  rows: Object.values(rows).map((list) => Uint32Array.from(list)),
});

describe("uniteExclusions", () => {
  it("names every row once, in order", () => {
    const united = uniteExclusions([
      exclusions({ 10: [7, 9], 2: [1] }),
      noExclusions,
      exclusions({ 10: [3, 7, 12], 11: [0] }),
    ]);
    expect(united).toEqual(exclusions({ 2: [1], 10: [3, 7, 9, 12], 11: [0] }));
  });

  it("is empty without parts", () => {
    expect(uniteExclusions([noExclusions])).toBe(noExclusions);
  });

  it("counts the memory of what is remembered", () => {
    expect(exclusionBytes(exclusions({ 1: [1, 2, 3] }))).toBeGreaterThan(
      exclusionBytes(noExclusions),
    );
  });
});
