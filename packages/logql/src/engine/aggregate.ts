import { compareLabels, keyOfLabels, type Labels } from "@skald/model";
import type { Budget } from "../plan/budget.js";
import type { PlanNode, SeriesMatrix } from "../plan/plan.js";
import { makeGrouper } from "../scan/series.js";
import type { VectorAggregation, VectorOp } from "../syntax/ast.js";
import { vectorKinds } from "../syntax/ast.js";

/** Applies a vector aggregation at every point. */
export function aggregateVector(
  node: VectorAggregation<PlanNode>,
  input: SeriesMatrix,
  budget: Budget,
): SeriesMatrix {
  switch (vectorKinds[node.op]) {
    case "sorts":
      return sortSeries(input, node.op === "sort" ? 1 : -1, budget);
    case "ranks":
      return keepExtremeSeries(node, input, budget);
    case "reduces":
      return aggregateGroups(node, input, budget);
  }
}

function aggregateGroups(
  node: VectorAggregation<PlanNode>,
  input: SeriesMatrix,
  budget: Budget,
): SeriesMatrix {
  const { pointCount } = input;
  const groups = groupSeries(node, input, budget);
  const reduction = reductions[node.op as Reducer];
  const rows = groups.map(({ labels, members }) => {
    budget.holdSeries(labels, pointCount);
    return aggregateMembers(reduction, input, members, budget);
  });
  return {
    pointCount,
    labels: groups.map((group) => group.labels),
    values: rows.map((row) => row.values),
    present: rows.map((row) => row.present),
  };
}

function aggregateMembers(
  { add, finish }: Reduction,
  input: SeriesMatrix,
  members: readonly number[],
  budget: Budget,
): { values: Float64Array; present: Uint8Array } {
  const { pointCount } = input;
  const counts = new Float64Array(pointCount);
  const values = new Float64Array(pointCount);
  const squares = new Float64Array(pointCount);
  for (const series of members) {
    budget.work(pointCount);
    const from = input.values[series] as Float64Array;
    const present = input.present[series] as Uint8Array;
    for (let p = 0; p < pointCount; p++) {
      if (present[p] === 1) add(counts, values, squares, p, from[p] as number);
    }
  }
  if (finish !== undefined) {
    for (let p = 0; p < pointCount; p++) values[p] = finish(counts[p]!, values[p]!, squares[p]!);
  }
  return { values, present: Uint8Array.from(counts, (count) => (count > 0 ? 1 : 0)) };
}

/** How the samples of a group at a point become one: they are added in turn, then finished. */
interface Reduction {
  readonly add: Addition;
  readonly finish?: (count: number, value: number, squares: number) => number;
}

type Addition = (
  counts: Float64Array,
  values: Float64Array,
  squares: Float64Array,
  point: number,
  value: number,
) => void;

const addValue: Addition = (counts, values, _, p, value) => {
  counts[p]! += 1;
  values[p]! += value;
};

/** Keeps the least value, or with sign -1 the greatest. A NaN gives way to any number. */
const addExtreme = (sign: 1 | -1): Addition => {
  return (counts, values, _, p, value) => {
    const kept = values[p]!;
    if (counts[p]!++ === 0 || Number.isNaN(kept) || sign * value < sign * kept) values[p] = value;
  };
};

/** Adds by Welford's recurrence: the mean to the values, the squared differences from it to the squares. */
const addSquares: Addition = (counts, values, squares, p, value) => {
  const delta = value - values[p]!;
  values[p]! += delta / ++counts[p]!;
  squares[p]! += delta * (value - values[p]!);
};

type Reducer = {
  [Op in VectorOp]: (typeof vectorKinds)[Op] extends "reduces" ? Op : never;
}[VectorOp];

const reductions: Readonly<Record<Reducer, Reduction>> = {
  sum: { add: addValue },
  count: { add: addValue, finish: (count) => count },
  avg: { add: addValue, finish: (count, sum) => sum / count },
  min: { add: addExtreme(1) },
  max: { add: addExtreme(-1) },
  stdvar: { add: addSquares, finish: varianceOf },
  stddev: {
    add: addSquares,
    finish: (count, mean, squares) => Math.sqrt(varianceOf(count, mean, squares)),
  },
};

/** One sample differs from nothing, be it NaN or infinite. */
function varianceOf(count: number, _mean: number, squares: number): number {
  return count === 1 ? 0 : squares / count;
}

/** One group of a vector aggregation: its labels and the numbers of its series. */
interface SeriesGroup {
  readonly labels: Labels;
  readonly members: number[];
}

/** Groups series in order of appearance; without a grouping there is one group that has no labels. */
function groupSeries(
  node: VectorAggregation<PlanNode>,
  input: SeriesMatrix,
  budget: Budget,
): SeriesGroup[] {
  const group = makeGrouper(node.grouping ?? { without: false, labels: [] });
  const groups = new Map<string, SeriesGroup>();
  input.labels.forEach((all, series) => {
    budget.work(1 + all.names.length);
    const labels = group(all);
    const key = keyOfLabels(labels);
    const known = groups.get(key);
    if (known !== undefined) known.members.push(series);
    else groups.set(key, { labels, members: [series] });
  });
  return [...groups.values()];
}

/**
 * sort and sort_desc (sign -1): series in the order of their values at the first point, NaN last, equal values by
 * labels. Only an instant result shows the order.
 */
function sortSeries(input: SeriesMatrix, sign: 1 | -1, budget: Budget): SeriesMatrix {
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
function compareWithNanLast(a: number, b: number): number {
  if (Number.isNaN(a)) return Number.isNaN(b) ? 0 : 1;
  if (Number.isNaN(b)) return -1;
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * topk, bottomk and approx_topk (which answers exactly): the k best series of each group at each point, with their
 * own labels. NaN loses against every number; of equal values the smaller label set wins.
 */
export function keepExtremeSeries(
  node: VectorAggregation<PlanNode>,
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
