import { formatLabels, invalidArgument, type Labels, labelValue, makeLabels } from "@skald/model";
import type { Budget } from "../../plan/budget.js";
import type { SeriesMatrix } from "../../plan/result.js";
import type { VectorMatching } from "../../syntax/ast.js";
import { matchedLabels, signatures } from "./signature.js";

/** The result for two samples; undefined when a comparison filters them out. */
export type SampleOperation = (left: number, right: number) => number | undefined;

/** Arithmetic and comparison: joins two vectors on their signatures, one to one or many to one. */
export function joinVectors(
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
  if (matching === undefined) return (many) => many;
  if (matching.group === undefined) return matchedLabels(matching);
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
  readonly #byText = new Map<string, number>();
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
    const text = formatLabels(labels);
    const known = this.#byText.get(text);
    if (known !== undefined) return known;
    this.#budget.holdSeries(labels, this.#pointCount);
    const row = this.#labels.push(labels) - 1;
    this.#byText.set(text, row);
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
