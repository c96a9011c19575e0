import { describe, expect, it } from "@jest/globals";
import { countWithin, emptyMask, maskBytes, shareMask, uniteMasks } from "./row-mask.js";

const mask = (rows: Readonly<Record<number, readonly number[]>>) => ({
  blocks: Uint32Array.from(Object.keys(rows), Number),
  rows: Object.values(rows).map((list) => Uint32Array.from(list)),
});

describe("uniteMasks", () => {
  it("names every row once, in order", () => {
    const united = uniteMasks([
      mask({ 10: [7, 9], 2: [1] }),
      emptyMask,
      mask({ 10: [3, 7, 12], 11: [0] }),
    ]);
    expect(united).toEqual(mask({ 2: [1], 10: [3, 7, 9, 12], 11: [0] }));
  });

  it("is empty without parts", () => {
    expect(uniteMasks([emptyMask])).toBe(emptyMask);
  });

  it.each([
    [0, 100, 4],
    [2, 7, 2],
    [3, 8, 2],
    [4, 4, 0],
    [10, 100, 0],
  ])("counts the rows from %d to %d", (from, to, want) => {
    expect(countWithin(Uint32Array.of(1, 3, 6, 9), from, to)).toBe(want);
  });

  it("are the same in shared memory", () => {
    const plain = mask({ 2: [1], 10: [3, 7] });
    const shared = shareMask(plain);
    expect(shared).toEqual(plain);
    expect(shared.rows[1]?.buffer).toBe(shared.rows[0]?.buffer);
    expect(structuredClone(shared)).toEqual(plain);
    expect(shareMask(emptyMask)).toBe(emptyMask);
  });

  it("counts the memory of what is remembered", () => {
    expect(maskBytes(mask({ 1: [1, 2, 3] }))).toBeGreaterThan(maskBytes(emptyMask));
  });
});
