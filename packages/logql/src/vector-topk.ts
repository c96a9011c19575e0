import { compareLabels } from "@skald/model";
import type { VectorNode } from "./plan.js";
import type { SeriesMatrix } from "./result.js";
import { groupSeries } from "./vector-group.js";
import { compareWithNanLast } from "./vector-sort.js";

/**
 * topk, bottomk and approx_topk (which answers exactly): the k best series of each group at each point, with their
 * own labels. NaN loses against every number; of equal values the smaller label set wins.
 */
export function keepExtremeSeries(node: VectorNode, input: SeriesMatrix): SeriesMatrix {
  const { pointCount, labels } = input;
  const limit = node.parameter ?? 1;
  const kept = input.labels.map(() => new Uint8Array(pointCount));
  const sign = node.op === "bottomk" ? 1 : -1;
  for (const { members } of groupSeries(node, input)) {
    members.sort((a, b) => compareLabels(labels[a]!, labels[b]!));
    for (let p = 0; p < pointCount; p++) {
      for (const series of bestAt(input, members, p, limit, sign)) kept[series]![p] = 1;
    }
  }
  const used = kept.flatMap((row, series) => (row.includes(1) ? [series] : []));
  return {
    pointCount,
    labels: used.map((series) => labels[series]!),
    values: used.map((series) => input.values[series]!),
    present: used.map((series) => kept[series]!),
  };
}

function bestAt(
  input: SeriesMatrix,
  members: readonly number[],
  point: number,
  limit: number,
  sign: 1 | -1,
): readonly number[] {
  const present = members.filter((series) => input.present[series]![point] === 1);
  if (present.length <= limit) return present;
  const scoreOf = (series: number) => sign * (input.values[series]![point] as number);
  // Array sort is stable, so members with equal values stay in the order of their labels.
  present.sort((a, b) => compareWithNanLast(scoreOf(a), scoreOf(b)));
  return present.slice(0, limit);
}
