import { describe, expect, it } from "@jest/globals";
import { type ArithmeticOp, type BinaryOp, calculateLiterals, calculations } from "./operator.js";

describe("calculations", () => {
  it.each<[number, ArithmeticOp, number, number]>([
    [7, "+", 3, 10],
    [7, "-", 3, 4],
    [7, "*", 3, 21],
    [7, "/", 3, 7 / 3],
    [7, "/", 0, Number.NaN],
    [0, "/", 0, Number.NaN],
    [7, "/", -0, Number.NaN],
    [-7, "%", 3, -1],
    [7, "%", 0, Number.NaN],
    [2, "^", 10, 1024],
    [1, "^", Number.NaN, 1],
    [-1, "^", Number.POSITIVE_INFINITY, 1],
    [-8, "^", 1 / 3, Number.NaN],
  ])("%p %s %p = %p", (left, op, right, want) => {
    expect(calculations[op](left, right)).toBe(want);
  });
});

describe("calculateLiterals", () => {
  it.each<[number, BinaryOp, number, number]>([
    [1, "/", 0, Number.NaN],
    [0, "/", 0, Number.NaN],
    [1, ">", 2, 0],
    [1, "<=", 2, 1],
    [2, "^", 3, 8],
  ])("%p %s %p = %p", (left, op, right, want) => {
    expect(calculateLiterals(op, left, right)).toBe(want);
  });
});
