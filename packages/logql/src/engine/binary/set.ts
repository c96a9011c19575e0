import type { Budget } from "../../plan/budget.js";
import type { SeriesMatrix } from "../../plan/result.js";
import type { VectorMatching } from "../../syntax/ast.js";
import type { SetOp } from "../../syntax/calculate.js";
import { signatures } from "./signature.js";

/**
 * and, or, unless: whole samples of either side, chosen by whether their signature exists on the other side. `or` may
 * leave two series with equal labels, one of each side, that share no point.
 */
export function combineSets(
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
