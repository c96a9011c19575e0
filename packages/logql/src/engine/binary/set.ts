import type { SeriesMatrix } from "../../plan/result.js";
import type { VectorMatching } from "../../syntax/ast.js";
import type { SetOp } from "../../syntax/calculate.js";
import { joinEqualSeries } from "../join.js";
import { signature } from "./join.js";

/** and, or, unless: whole samples of either side, chosen by whether their signature exists on the other side. */
export function combineSets(
  op: SetOp,
  matching: VectorMatching | undefined,
  left: SeriesMatrix,
  right: SeriesMatrix,
): SeriesMatrix {
  if (op !== "or") return filterBy(left, right, matching, op === "and");
  const added = filterBy(right, left, matching, false);
  const both = {
    pointCount: left.pointCount,
    labels: [...left.labels, ...added.labels],
    values: [...left.values, ...added.values],
    present: [...left.present, ...added.present],
  };
  // A sample is added only where the left side lacks its signature, so equal series share no point.
  return joinEqualSeries(both, () => new Error("or added a sample that was there"));
}

/** The samples of a vector whose signature exists, or does not exist, in the other vector at the same point. */
function filterBy(
  vector: SeriesMatrix,
  other: SeriesMatrix,
  matching: VectorMatching | undefined,
  wanted: boolean,
): SeriesMatrix {
  const { pointCount } = vector;
  const presentBySignature = new Map<string, Uint8Array>();
  other.labels.forEach((labels, s) => {
    const key = signature(labels, matching);
    const known = presentBySignature.get(key) ?? new Uint8Array(pointCount);
    const row = other.present[s] as Uint8Array;
    for (let p = 0; p < pointCount; p++) known[p]! |= row[p] as number;
    presentBySignature.set(key, known);
  });
  const present = vector.labels.map((labels, s) => {
    const matches = presentBySignature.get(signature(labels, matching));
    const row = vector.present[s] as Uint8Array;
    return row.map((has, p) => (has === 1 && (matches?.[p] === 1) === wanted ? 1 : 0));
  });
  return { ...vector, present };
}
