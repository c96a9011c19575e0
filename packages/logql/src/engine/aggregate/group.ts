import { formatLabels, type Labels } from "@skald/model";
import type { Budget } from "../../plan/budget.js";
import type { VectorNode } from "../../plan/plan.js";
import type { SeriesMatrix } from "../../plan/result.js";
import type { Grouping } from "../../syntax/ast.js";

/** One group of a vector aggregation: its labels and the numbers of its series. */
export interface SeriesGroup {
  readonly labels: Labels;
  readonly members: number[];
}

/** Groups series in order of appearance; without a grouping there is one group that has no labels. */
export function groupSeries(node: VectorNode, input: SeriesMatrix, budget: Budget): SeriesGroup[] {
  const group = makeGrouper(node.grouping ?? { without: false, labels: [] });
  const groups = new Map<string, SeriesGroup>();
  input.labels.forEach((all, series) => {
    budget.work(1 + all.names.length);
    const labels = group(all);
    const key = formatLabels(labels);
    const known = groups.get(key);
    if (known !== undefined) known.members.push(series);
    else groups.set(key, { labels, members: [series] });
  });
  return [...groups.values()];
}

/** The labels that a grouping leaves of a label set, however many the grouping names. */
export function makeGrouper({ without, labels }: Grouping): (all: Labels) => Labels {
  const named = new Set(labels);
  return (all) => {
    const names: string[] = [];
    const values: string[] = [];
    for (let i = 0; i < all.names.length; i++) {
      const name = all.names[i] as string;
      if (named.has(name) === without) continue;
      names.push(name);
      values.push(all.values[i] as string);
    }
    return { names, values };
  };
}
