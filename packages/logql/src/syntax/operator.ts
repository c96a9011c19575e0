/** How tightly each binary operator binds; all group to the left but `^`. */
export const precedence = {
  ...{ or: 1, and: 2, unless: 2 },
  ...{ "==": 3, "!=": 3, ">": 3, ">=": 3, "<": 3, "<=": 3 },
  ...{ "+": 4, "-": 4, "*": 5, "/": 5, "%": 5, "^": 6 },
} as const;

export type BinaryOp = keyof typeof precedence;
export type SetOp = "or" | "and" | "unless";
export type CompareOp = "==" | "!=" | ">" | ">=" | "<" | "<=";
export type ArithmeticOp = Exclude<BinaryOp, SetOp | CompareOp>;

export function isSetOp(op: BinaryOp): op is SetOp {
  return precedence[op] < precedence["=="];
}

export function isCompareOp(op: BinaryOp): op is CompareOp {
  return precedence[op] === precedence["=="];
}

type Calculation<Result> = (left: number, right: number) => Result;

/** Comparison of two samples. */
export const comparisons: Readonly<Record<CompareOp, Calculation<boolean>>> = {
  "==": (left, right) => left === right,
  "!=": (left, right) => left !== right,
  ">": (left, right) => left > right,
  ">=": (left, right) => left >= right,
  "<": (left, right) => left < right,
  "<=": (left, right) => left <= right,
};

/** Arithmetic between two samples. Division and modulo by 0 give NaN, as the reference answers. */
export const calculations: Readonly<Record<ArithmeticOp, Calculation<number>>> = {
  "+": (left, right) => left + right,
  "-": (left, right) => left - right,
  "*": (left, right) => left * right,
  "/": (left, right) => (right === 0 ? Number.NaN : left / right),
  "%": (left, right) => left % right,
  "^": power,
};

/** Calculates with two literals as with samples; a comparison gives 1 or 0 with and without bool. */
export function calculateLiterals(op: BinaryOp, left: number, right: number): number {
  if (isSetOp(op)) throw new Error(`${op} between literals`);
  if (isCompareOp(op)) return comparisons[op](left, right) ? 1 : 0;
  return calculations[op](left, right);
}

/** IEEE 754 pow: unlike `**`, it gives 1 for a base of 1, and for -1 to an infinite power. */
function power(base: number, exponent: number): number {
  if (base === 1) return 1;
  if (base === -1 && Math.abs(exponent) === Number.POSITIVE_INFINITY) return 1;
  return base ** exponent;
}
