import { formatLabels, type Labels } from "@skald/model";
import type { SeriesMatrix } from "../plan/result.js";

/**
 * Makes one series of those with equal labels, which some operations leave. Throws what `onClash` makes when two of
 * them have a sample at the same point.
 */
export function joinEqualSeries(
  input: SeriesMatrix,
  onClash: (labels: Labels) => Error,
): SeriesMatrix {
  const rowOf = new Map<string, number>();
  const labels: Labels[] = [];
  const values: Float64Array[] = [];
  const present: Uint8Array[] = [];
  input.labels.forEach((set, s) => {
    const text = formatLabels(set);
    const row = rowOf.get(text);
    if (row === undefined) {
      rowOf.set(text, labels.push(set) - 1);
      values.push((input.values[s] as Float64Array).slice());
      present.push((input.present[s] as Uint8Array).slice());
      return;
    }
    for (let p = 0; p < input.pointCount; p++) {
      if (input.present[s]![p] === 0) continue;
      if (present[row]![p] === 1) throw onClash(set);
      values[row]![p] = input.values[s]![p] as number;
      present[row]![p] = 1;
    }
  });
  return { pointCount: input.pointCount, labels, values, present };
}
