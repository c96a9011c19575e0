import type { BinaryExpr, VectorMatching } from "../../syntax/ast.js";
import { clean, grouped, keyOf, type NaiveSample, type NaiveValue } from "./labels.js";

/** What a one-to-one or many-to-one match refuses. */
export class NaiveMatchError extends Error {}

/** A binary operation between two values at one point. */
export function naiveBinary(expr: BinaryExpr, left: NaiveValue, right: NaiveValue): NaiveValue {
  if (typeof left === "number" && typeof right === "number") {
    const compared = comparison(expr.op, left, right);
    if (compared !== undefined) return Number(compared);
    return expr.op === "/" ? left / right : arithmetic(expr.op, left, right);
  }
  if (typeof left === "number" || typeof right === "number") {
    const vector = (typeof left === "number" ? right : left) as readonly NaiveSample[];
    return vector.flatMap((sample) => {
      const a = typeof left === "number" ? left : sample.value;
      const b = typeof right === "number" ? right : sample.value;
      const value = combine(expr, a, b, sample.value);
      return value === undefined ? [] : [{ labels: sample.labels, value }];
    });
  }
  return vectors(expr, left, right);
}

function combine(expr: BinaryExpr, a: number, b: number, kept: number): number | undefined {
  const compared = comparison(expr.op, a, b);
  if (compared === undefined) return arithmetic(expr.op, a, b);
  if (expr.bool) return Number(compared);
  return compared ? kept : undefined;
}

function comparison(op: BinaryExpr["op"], a: number, b: number): boolean | undefined {
  if (op === "==") return a === b;
  if (op === "!=") return a !== b;
  if (op === ">") return a > b;
  if (op === ">=") return a >= b;
  if (op === "<") return a < b;
  return op === "<=" ? a <= b : undefined;
}

function arithmetic(op: BinaryExpr["op"], a: number, b: number): number {
  if (op === "+") return a + b;
  if (op === "-") return a - b;
  if (op === "*") return a * b;
  if (op === "/") return b === 0 ? Number.NaN : a / b;
  if (op === "%") return a % b;
  return a === 1 ? 1 : a ** b;
}

function vectors(
  expr: BinaryExpr,
  left: readonly NaiveSample[],
  right: readonly NaiveSample[],
): NaiveSample[] {
  const key = (sample: NaiveSample) => signatureOf(sample, expr.matching);
  const has = (side: readonly NaiveSample[], sample: NaiveSample) =>
    side.some((other) => key(other) === key(sample));
  if (expr.op === "and") return left.filter((sample) => has(right, sample));
  if (expr.op === "unless") return left.filter((sample) => !has(right, sample));
  if (expr.op === "or") return [...left, ...right.filter((sample) => !has(left, sample))];
  const manyIsRight = expr.matching?.group?.side === "right";
  const many = manyIsRight ? right : left;
  const one = manyIsRight ? left : right;
  if (new Set(one.map(key)).size < one.length) throw new NaiveMatchError("duplicates on one side");
  const seen = new Set<string>();
  return many.flatMap((sample) => {
    const match = one.find((other) => key(other) === key(sample));
    if (match === undefined) return [];
    const labels = joinedLabels(sample, match, expr.matching);
    if (seen.has(keyOf(labels))) throw new NaiveMatchError("several matches");
    seen.add(keyOf(labels));
    const [a, b] = manyIsRight ? [match, sample] : [sample, match];
    const value = combine(expr, a.value, b.value, a.value);
    return value === undefined ? [] : [{ labels, value }];
  });
}

function signatureOf({ labels }: NaiveSample, matching: VectorMatching | undefined): string {
  if (matching === undefined) return keyOf(labels);
  return keyOf(grouped(labels, { without: !matching.on, labels: matching.labels }));
}

function joinedLabels(
  many: NaiveSample,
  one: NaiveSample,
  matching: VectorMatching | undefined,
): Readonly<Record<string, string>> {
  if (matching === undefined) return many.labels;
  if (matching.group === undefined) {
    return grouped(many.labels, { without: !matching.on, labels: matching.labels });
  }
  const copied = matching.group.include.map((name) => [name, one.labels[name] ?? ""] as const);
  return clean({ ...many.labels, ...Object.fromEntries(copied) });
}
