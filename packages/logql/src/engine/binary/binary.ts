import type { Budget } from "../../plan/budget.js";
import type { BinaryNode } from "../../plan/plan.js";
import type { SeriesMatrix } from "../../plan/result.js";
import type { BinaryOp } from "../../syntax/ast.js";
import { calculate, compare, isCompareOp, isSetOp } from "../../syntax/calculate.js";
import { joinVectors, type SampleOperation } from "./join.js";
import { combineSets } from "./set.js";

/** A binary operation between two vectors at every point. Throws invalid_argument when matching is ambiguous. */
export function combineVectors(
  node: BinaryNode,
  left: SeriesMatrix,
  right: SeriesMatrix,
  budget: Budget,
): SeriesMatrix {
  const { op, matching } = node;
  if (isSetOp(op)) return combineSets(op, matching, { left, right }, budget);
  return joinVectors(matching, { left, right }, sampleOperation(op, node.bool, "left"), budget);
}

/** A vector and the literal that stands on one side of it. */
export interface LiteralOperation {
  readonly node: BinaryNode;
  readonly vector: SeriesMatrix;
  readonly literal: number;
  /** Where the literal stands. */
  readonly side: "left" | "right";
}

/** A binary operation between each sample and a literal; labels stay. */
export function combineWithLiteral(
  { node, vector, literal, side }: LiteralOperation,
  budget: Budget,
): SeriesMatrix {
  const { op, bool } = node;
  if (isSetOp(op)) throw new Error(`${op} with a literal`);
  const operation = sampleOperation(op, bool, side === "left" ? "right" : "left");
  for (const labels of vector.labels) budget.holdSeries(labels, vector.pointCount);
  const values = vector.values.map((row) => new Float64Array(row.length));
  const present = vector.present.map((row) => row.slice());
  vector.values.forEach((row, s) => {
    for (let p = 0; p < row.length; p++) {
      if (present[s]![p] === 0) continue;
      const value = row[p] as number;
      const result = side === "left" ? operation(literal, value) : operation(value, literal);
      if (result === undefined) present[s]![p] = 0;
      else values[s]![p] = result;
    }
  });
  return { ...vector, values, present };
}

/** `kept`: whose value a comparison without bool keeps. */
function sampleOperation(
  op: Exclude<BinaryOp, "and" | "or" | "unless">,
  bool: boolean,
  kept: "left" | "right",
): SampleOperation {
  if (!isCompareOp(op)) return (left, right) => calculate(op, left, right);
  if (bool) return (left, right) => (compare(op, left, right) ? 1 : 0);
  if (kept === "left") return (left, right) => (compare(op, left, right) ? left : undefined);
  return (left, right) => (compare(op, left, right) ? right : undefined);
}
