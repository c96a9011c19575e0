import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { BestKeys } from "./log.js";

describe("BestKeys", () => {
  it("gives the largest of the smallest", () => {
    const keys = new BestKeys(2);
    for (const key of [5, 1, 4, 2, 3, 9, 9, 9]) keys.add(key);
    expect(keys.finish()).toBe(2);
  });

  it("has no answer while there are too few", () => {
    const keys = new BestKeys(3);
    keys.add(1);
    keys.add(2);
    expect(keys.finish()).toBeUndefined();
  });

  it("agrees with sorting", () => {
    fc.assert(
      fc.property(fc.array(fc.integer()), fc.integer({ min: 1, max: 20 }), (values, limit) => {
        const keys = new BestKeys(limit);
        for (const value of values) keys.add(value);
        expect(keys.finish()).toBe([...values].sort((a, b) => a - b)[limit - 1]);
      }),
    );
  });
});
