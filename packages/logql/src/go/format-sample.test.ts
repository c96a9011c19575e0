import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { formatSample } from "./numbers.js";

describe("formatSample", () => {
  it.each([
    [0, "0"],
    [-0, "-0"],
    [1, "1"],
    [-0.5, "-0.5"],
    [0.1 + 0.2, "0.30000000000000004"],
    [1e21, "1000000000000000000000"],
    [1.5e300, `15${"0".repeat(299)}`],
    [-1.2345e22, "-12345000000000000000000"],
    [1e-7, "0.0000001"],
    [-1.25e-9, "-0.00000000125"],
    [5e-324, `0.${"0".repeat(323)}5`],
    [123456789012, "123456789012"],
    [Number.NaN, "NaN"],
    [Number.POSITIVE_INFINITY, "+Inf"],
    [Number.NEGATIVE_INFINITY, "-Inf"],
  ])("%p is %s", (value, want) => {
    expect(formatSample(value)).toBe(want);
  });

  it("reads back as the same number and has no exponent", () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        const text = formatSample(value);
        expect(text).toMatch(/^-?\d+(\.\d+)?$/);
        expect(Number(text)).toBe(value);
      }),
    );
  });
});
