import { unreachable } from "@skald/model";
import type { BinaryOp, CompareOp } from "./ast.js";

export type SetOp = "and" | "or" | "unless";

export type ArithmeticOp = Exclude<BinaryOp, SetOp | CompareOp>;

export function isSetOp(op: BinaryOp): op is SetOp {
  return op === "and" || op === "or" || op === "unless";
}

export function isCompareOp(op: BinaryOp): op is CompareOp {
  return op === "==" || op === "!=" || op === ">" || op === ">=" || op === "<" || op === "<=";
}

/** Arithmetic between samples. Division and modulo by 0 give NaN, as the reference answers. */
export function calculate(op: ArithmeticOp, left: number, right: number): number {
  switch (op) {
    case "+":
      return left + right;
    case "-":
      return left - right;
    case "*":
      return left * right;
    case "/":
      return right === 0 ? Number.NaN : left / right;
    case "%":
      return left % right;
    case "^":
      return power(left, right);
    default:
      return unreachable(op);
  }
}

export function compare(op: CompareOp, left: number, right: number): boolean {
  switch (op) {
    case "==":
      return left === right;
    case "!=":
      return left !== right;
    case ">":
      return left > right;
    case ">=":
      return left >= right;
    case "<":
      return left < right;
    case "<=":
      return left <= right;
    default:
      return unreachable(op);
  }
}

/** Between two literals, also while parsing: as between samples, and a comparison gives 1 or 0 with and without bool. */
export function calculateLiterals(op: BinaryOp, left: number, right: number): number {
  if (isSetOp(op)) throw new Error(`${op} between literals`);
  if (isCompareOp(op)) return compare(op, left, right) ? 1 : 0;
  return calculate(op, left, right);
}

/** IEEE 754 pow: unlike `**`, 1 to any power is 1, and so is -1 to an infinite one. */
function power(base: number, exponent: number): number {
  if (base === 1) return 1;
  if (base === -1 && Math.abs(exponent) === Number.POSITIVE_INFINITY) return 1;
  return base ** exponent;
}
