import { compareLabels } from "@skald/model";
import type { Budget } from "../../plan/budget.js";
import type { SeriesMatrix } from "../../plan/result.js";

/**
 * sort and sort_desc (sign -1): series in the order of their values at the first point, NaN last, equal values by
 * labels. Only an instant result shows the order.
 */
export function sortSeries(input: SeriesMatrix, sign: 1 | -1, budget: Budget): SeriesMatrix {
  const { labels, values, present } = input;
  const order = labels.map((_, s) => s);
  order.sort((a, b) => {
    budget.work(1);
    return (
      compareWithNanLast(sign * values[a]![0]!, sign * values[b]![0]!) ||
      compareLabels(labels[a]!, labels[b]!)
    );
  });
  for (const set of labels) budget.holdSeries(set, input.pointCount);
  return {
    pointCount: input.pointCount,
    labels: order.map((s) => labels[s]!),
    values: order.map((s) => values[s]!),
    present: order.map((s) => present[s]!),
  };
}

/** Orders numbers ascending, NaN behind all of them. */
export function compareWithNanLast(a: number, b: number): number {
  if (Number.isNaN(a)) return Number.isNaN(b) ? 0 : 1;
  if (Number.isNaN(b)) return -1;
  return a < b ? -1 : a > b ? 1 : 0;
}
