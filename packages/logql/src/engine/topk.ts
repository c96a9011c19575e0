import { compareLabels } from "@skald/model";
import type { VectorNode } from "../plan/plan.js";
import type { SeriesMatrix } from "../plan/result.js";
import { groupSeries } from "./group.js";
import { compareWithNanLast } from "./sort.js";

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

/** The best members that have a sample at the point, at most `limit`. */
function bestAt(
  input: SeriesMatrix,
  members: readonly number[],
  point: number,
  limit: number,
  sign: 1 | -1,
): readonly number[] {
  const best: number[] = [];
  const scores: number[] = [];
  for (const series of members) {
    if (input.present[series]![point] === 0) continue;
    const score = sign * (input.values[series]![point] as number);
    if (best.length === limit && compareWithNanLast(score, scores[limit - 1]!) >= 0) continue;
    // Members come in the order of their labels, and an equal one stays in front.
    let place = Math.min(best.length, limit - 1);
    while (place > 0 && compareWithNanLast(score, scores[place - 1]!) < 0) place--;
    if (best.length === limit) {
      best.pop();
      scores.pop();
    }
    best.splice(place, 0, series);
    scores.splice(place, 0, score);
  }
  return best;
}
