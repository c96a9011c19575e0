import { unreachable } from "@skald/model";
import type { BinaryOp } from "./ast.js";

/** The value of an operator between two literals; a comparison gives 1 or 0, division and modulo by 0 give NaN. */
export function foldLiterals(op: BinaryOp, left: number, right: number): number {
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
      return right === 0 ? Number.NaN : left % right;
    case "^":
      return power(left, right);
    case "==":
      return Number(left === right);
    case "!=":
      return Number(left !== right);
    case ">":
      return Number(left > right);
    case ">=":
      return Number(left >= right);
    case "<":
      return Number(left < right);
    case "<=":
      return Number(left <= right);
    case "or":
    case "and":
    case "unless":
      throw new Error(`${op} between literals has no value`);
    default:
      return unreachable(op);
  }
}

/** IEEE 754 power: unlike JavaScript's, 1 to any power is 1, and so is -1 to an infinite one. */
function power(base: number, exponent: number): number {
  if (base === 1) return 1;
  if (base === -1 && Math.abs(exponent) === Number.POSITIVE_INFINITY) return 1;
  return base ** exponent;
}
