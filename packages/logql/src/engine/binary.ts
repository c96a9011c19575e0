import { invalidArgument, keyOfLabels, type Labels, labelValue, makeLabels } from "@skald/model";
import type { Budget } from "../plan/budget.js";
import type { PlanNode, SeriesMatrix } from "../plan/plan.js";
import { makeGrouper } from "../scan/series.js";
import type { BinaryExpr, VectorMatching } from "../syntax/ast.js";
import {
  type BinaryOp,
  calculations,
  comparisons,
  isCompareOp,
  isSetOp,
  type SetOp,
} from "../syntax/operator.js";

/** A binary operation between two vectors at every point. Throws invalid_argument when matching is ambiguous. */
export function combineVectors(
  node: BinaryExpr<PlanNode>,
  left: SeriesMatrix,
  right: SeriesMatrix,
  budget: Budget,
): SeriesMatrix {
  const { op, matching } = node;
  if (isSetOp(op)) return combineSets(op, matching, { left, right }, budget);
  return joinVectors(matching, { left, right }, sampleOperation(op, node.bool, "left"), budget);
}

/** A vector and the literal that stands on one side of it. */
interface LiteralOperation {
  readonly node: BinaryExpr<PlanNode>;
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
  op: Exclude<BinaryOp, SetOp>,
  bool: boolean,
  kept: "left" | "right",
): SampleOperation {
  if (!isCompareOp(op)) return calculations[op];
  const isTrue = comparisons[op];
  if (bool) return (left, right) => (isTrue(left, right) ? 1 : 0);
  if (kept === "left") return (left, right) => (isTrue(left, right) ? left : undefined);
  return (left, right) => (isTrue(left, right) ? right : undefined);
}

/** The result for two samples; undefined when a comparison filters them out. */
type SampleOperation = (left: number, right: number) => number | undefined;

/** Arithmetic and comparison: joins two vectors on their signatures, one to one or many to one. */
function joinVectors(
  matching: VectorMatching | undefined,
  sides: { readonly left: SeriesMatrix; readonly right: SeriesMatrix },
  operation: SampleOperation,
  budget: Budget,
): SeriesMatrix {
  const manyIsRight = matching?.group?.side === "right";
  const many = manyIsRight ? sides.right : sides.left;
  const one = manyIsRight ? sides.left : sides.right;
  const signatureOf = signatures(matching, budget);
  const ones = onesBySignature(one, signatureOf, manyIsRight ? "left" : "right", budget);
  const result = new JoinedSeries(many.pointCount, matching, budget);
  const labelsOf = resultLabels(matching, budget);
  many.labels.forEach((labels, s) => {
    const matches = ones.get(signatureOf(labels));
    if (matches === undefined) return;
    const rows = new Map<number, number>();
    const rowOf = (match: number) => {
      const known = rows.get(match) ?? result.row(labelsOf(labels, one.labels[match]!));
      rows.set(match, known);
      return known;
    };
    budget.work(many.pointCount);
    for (let p = 0; p < many.pointCount; p++) {
      const match = typeof matches === "number" ? matches : (matches[p] as number);
      if (many.present[s]![p] === 0 || match < 0 || one.present[match]![p] === 0) continue;
      const a = many.values[s]![p] as number;
      const b = one.values[match]![p] as number;
      result.set(rowOf(match), p, manyIsRight ? operation(b, a) : operation(a, b));
    }
  });
  return result.matrix();
}

/** The series of the `one` side that a signature has: its number, or at each point the one that is there, or -1. */
type Ones = number | Int32Array;

/** Several series of a signature are fine as long as they never have samples together. */
function onesBySignature(
  one: SeriesMatrix,
  signatureOf: (labels: Labels) => string,
  side: "left" | "right",
  budget: Budget,
): ReadonlyMap<string, Ones> {
  const { pointCount, present } = one;
  const bySignature = new Map<string, Ones>();
  one.labels.forEach((labels, s) => {
    const key = signatureOf(labels);
    const known = bySignature.get(key);
    if (known === undefined) {
      bySignature.set(key, s);
      return;
    }
    budget.work(pointCount);
    const at = typeof known === "number" ? placesOf(one, known) : known;
    for (let p = 0; p < pointCount; p++) {
      if (present[s]![p] === 0) continue;
      if ((at[p] as number) >= 0) throw duplicateSeries(side);
      at[p] = s;
    }
    bySignature.set(key, at);
  });
  return bySignature;
}

function placesOf({ pointCount, present }: SeriesMatrix, series: number): Int32Array {
  const row = present[series] as Uint8Array;
  const at = new Int32Array(pointCount);
  for (let p = 0; p < pointCount; p++) at[p] = row[p] === 1 ? series : -1;
  return at;
}

function duplicateSeries(side: "left" | "right"): Error {
  return invalidArgument(
    `found duplicate series on the ${side} hand-side;many-to-many matching not allowed: matching labels must be unique on one side`,
  );
}

/** One to one: the labels of the signature. Many to one: those of the many side and what is copied from the other. */
function resultLabels(
  matching: VectorMatching | undefined,
  budget: Budget,
): (many: Labels, one: Labels) => Labels {
  if (matching?.group === undefined) return matchedLabels(matching);
  const { include } = matching.group;
  if (include.length === 0) return (many) => many;
  return (many, one) => {
    budget.work(include.length * (1 + one.names.length));
    const own = many.names.map((name, i) => [name, many.values[i] as string] as const);
    return makeLabels([...own, ...include.map((name) => [name, labelValue(one, name)] as const)]);
  };
}

/** The series of a join under construction; one sample per series and point. */
class JoinedSeries {
  readonly #pointCount: number;
  readonly #matching: VectorMatching | undefined;
  readonly #budget: Budget;
  readonly #byKey = new Map<string, number>();
  readonly #labels: Labels[] = [];
  readonly #values: Float64Array[] = [];
  readonly #present: Uint8Array[] = [];
  /** Points that were matched, also those that a comparison filtered out. */
  readonly #matched: Uint8Array[] = [];

  constructor(pointCount: number, matching: VectorMatching | undefined, budget: Budget) {
    this.#pointCount = pointCount;
    this.#matching = matching;
    this.#budget = budget;
  }

  row(labels: Labels): number {
    this.#budget.work(1 + labels.names.length);
    const key = keyOfLabels(labels);
    const known = this.#byKey.get(key);
    if (known !== undefined) return known;
    this.#budget.holdSeries(labels, this.#pointCount);
    const row = this.#labels.push(labels) - 1;
    this.#byKey.set(key, row);
    this.#values.push(new Float64Array(this.#pointCount));
    this.#present.push(new Uint8Array(this.#pointCount));
    this.#matched.push(new Uint8Array(this.#pointCount));
    return row;
  }

  set(row: number, point: number, value: number | undefined): void {
    if (this.#matched[row]![point] === 1) throw this.#ambiguous();
    this.#matched[row]![point] = 1;
    if (value === undefined) return;
    this.#values[row]![point] = value;
    this.#present[row]![point] = 1;
  }

  matrix(): SeriesMatrix {
    return {
      pointCount: this.#pointCount,
      labels: this.#labels,
      values: this.#values,
      present: this.#present,
    };
  }

  #ambiguous(): Error {
    return invalidArgument(
      this.#matching?.group === undefined
        ? "multiple matches for labels: many-to-one matching must be explicit (group_left/group_right)"
        : "multiple matches for labels: grouping labels must ensure unique matches",
    );
  }
}

/**
 * and, or, unless: whole samples of either side, chosen by whether their signature exists on the other side. `or` may
 * leave two series with equal labels, one of each side, that share no point.
 */
function combineSets(
  op: SetOp,
  matching: VectorMatching | undefined,
  sides: { readonly left: SeriesMatrix; readonly right: SeriesMatrix },
  budget: Budget,
): SeriesMatrix {
  const { left, right } = sides;
  if (op !== "or") return filterBy(left, right, { matching, wanted: op === "and" }, budget);
  const added = filterBy(right, left, { matching, wanted: false }, budget);
  for (const labels of left.labels) budget.holdSeries(labels, left.pointCount);
  return {
    pointCount: left.pointCount,
    labels: [...left.labels, ...added.labels],
    values: [...left.values, ...added.values],
    present: [...left.present, ...added.present],
  };
}

interface SetFilter {
  readonly matching: VectorMatching | undefined;
  /** Whether the signature must exist on the other side, or must not. */
  readonly wanted: boolean;
}

/** The samples of a vector whose signature exists, or does not exist, in the other vector at the same point. */
function filterBy(
  vector: SeriesMatrix,
  other: SeriesMatrix,
  { matching, wanted }: SetFilter,
  budget: Budget,
): SeriesMatrix {
  const { pointCount } = vector;
  const signatureOf = signatures(matching, budget);
  const presentBySignature = new Map<string, Uint8Array>();
  other.labels.forEach((labels, s) => {
    const key = signatureOf(labels);
    budget.work(pointCount);
    const known = presentBySignature.get(key) ?? new Uint8Array(pointCount);
    const row = other.present[s] as Uint8Array;
    for (let p = 0; p < pointCount; p++) known[p]! |= row[p] as number;
    presentBySignature.set(key, known);
  });
  const present = vector.labels.map((labels, s) => {
    const matches = presentBySignature.get(signatureOf(labels));
    budget.holdSeries(labels, pointCount);
    const row = vector.present[s] as Uint8Array;
    return row.map((has, p) => (has === 1 && (matches?.[p] === 1) === wanted ? 1 : 0));
  });
  return { ...vector, present };
}

/** Gives the labels that `on` and `ignoring` leave of a label set; without matching all. */
function matchedLabels(matching: VectorMatching | undefined): (all: Labels) => Labels {
  return makeGrouper(matching && { without: !matching.on, labels: matching.labels });
}

/** The labels that decide which samples of two vectors belong together, as a text. */
function signatures(
  matching: VectorMatching | undefined,
  budget: Budget,
): (labels: Labels) => string {
  const pick = matchedLabels(matching);
  return (labels) => {
    budget.work(1 + labels.names.length);
    return keyOfLabels(pick(labels));
  };
}
