import { formatLabels, type Labels } from "@skald/model";
import type { VectorNode } from "../plan/plan.js";
import type { SeriesMatrix } from "../plan/result.js";
import { groupLabels } from "../scan/metric/series.js";

/** One group of a vector aggregation: its labels and the numbers of its series. */
export interface SeriesGroup {
  readonly labels: Labels;
  readonly members: number[];
}

/** Groups series in order of appearance; without a grouping there is one group that has no labels. */
export function groupSeries(node: VectorNode, input: SeriesMatrix): SeriesGroup[] {
  const grouping = node.grouping ?? { without: false, labels: [] };
  const groups = new Map<string, SeriesGroup>();
  input.labels.forEach((all, series) => {
    const labels = groupLabels(all, grouping);
    const key = formatLabels(labels);
    const group = groups.get(key);
    if (group !== undefined) group.members.push(series);
    else groups.set(key, { labels, members: [series] });
  });
  return [...groups.values()];
}
