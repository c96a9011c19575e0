import { compareLabels, type Labels } from "@skald/model";
import type { Budget } from "../../plan/budget.js";
import type { VectorNode } from "../../plan/plan.js";
import type { SeriesMatrix } from "../../plan/result.js";
import { groupSeries } from "./group.js";
import { compareWithNanLast } from "./sort.js";

/**
 * topk, bottomk and approx_topk (which answers exactly): the k best series of each group at each point, with their
 * own labels. NaN loses against every number; of equal values the smaller label set wins.
 */
export function keepExtremeSeries(
  node: VectorNode,
  input: SeriesMatrix,
  budget: Budget,
): SeriesMatrix {
  const { pointCount, labels } = input;
  const limit = node.parameter ?? 1;
  const kept = labels.map(() => new Uint8Array(pointCount));
  const sign = node.op === "bottomk" ? 1 : -1;
  const scores = new Float64Array(labels.length);
  const order = orderBy(scores, labels, budget);
  for (const { members } of groupSeries(node, input, budget)) {
    for (let point = 0; point < pointCount; point++) {
      budget.work(members.length);
      const there = members.filter((series) => input.present[series]![point] === 1);
      for (const series of there) scores[series] = sign * (input.values[series]![point] as number);
      for (const series of firstOf(there, limit, order)) kept[series]![point] = 1;
    }
  }
  const used = kept.flatMap((row, series) => (row.includes(1) ? [series] : []));
  for (const series of used) budget.holdSeries(labels[series]!, pointCount);
  return {
    pointCount,
    labels: used.map((series) => labels[series]!),
    values: used.map((series) => input.values[series]!),
    present: used.map((series) => kept[series]!),
  };
}

/** Negative where series a stands before series b. */
type Order = (a: number, b: number) => number;

function orderBy(scores: Float64Array, labels: readonly Labels[], budget: Budget): Order {
  return (a, b) => {
    budget.work(1);
    const left = scores[a] as number;
    const right = scores[b] as number;
    if (left < right) return -1;
    if (left > right) return 1;
    return compareWithNanLast(left, right) || compareLabels(labels[a]!, labels[b]!) || a - b;
  };
}

/** The first items in an order, without sorting them: a heap has the last of those kept so far on top. */
function firstOf(items: readonly number[], limit: number, order: Order): readonly number[] {
  if (items.length <= limit) return items;
  const heap = items.slice(0, limit);
  for (let at = (limit >>> 1) - 1; at >= 0; at--) sink(heap, at, order);
  for (let i = limit; i < items.length; i++) {
    const item = items[i] as number;
    if (order(item, heap[0] as number) >= 0) continue;
    heap[0] = item;
    sink(heap, 0, order);
  }
  return heap;
}

/** Moves the item at a place down until no child stands behind it in the order. */
function sink(heap: number[], from: number, order: Order): void {
  const item = heap[from] as number;
  let at = from;
  for (let child = 2 * at + 1; child < heap.length; child = 2 * at + 1) {
    const right = child + 1;
    const isRight = right < heap.length && order(heap[right] as number, heap[child] as number) > 0;
    const last = isRight ? right : child;
    if (order(heap[last] as number, item) <= 0) break;
    heap[at] = heap[last] as number;
    at = last;
  }
  heap[at] = item;
}
