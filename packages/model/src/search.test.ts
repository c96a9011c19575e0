import { describe, expect, it } from "@jest/globals";
import { lowerBound, placeAmong } from "./search.js";

describe("ascending numbers", () => {
  it.each([
    [[], 3, 0, -1],
    [[3], 2, 0, -1],
    [[3], 3, 0, 0],
    [[3], 4, 1, -1],
    [[1, 3, 3, 3, 9], 3, 1, 1],
    [[1, 3, 3, 3, 9], 4, 4, -1],
    [[0, 4_294_967_295], 4_294_967_295, 1, 1],
  ])("%j: %d", (numbers, wanted, bound, place) => {
    const ascending = Uint32Array.from(numbers);
    expect([lowerBound(ascending, wanted), placeAmong(ascending, wanted)]).toEqual([bound, place]);
  });
});
