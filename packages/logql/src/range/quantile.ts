import type { Budget } from "../plan/budget.js";
import type { WindowFunction } from "./entries.js";
import { RankedWindow } from "./ranks.js";

/** Windows of at most this many values are selected from afresh, wherever the last one was. */
const fewValues = 128;

/**
 * quantile_over_time: linear interpolation between the two nearest ranks; NaN sorts before every number. -Inf for q
 * below 0, +Inf above 1. Windows that overlap share their work, so that long windows at many points stay cheap.
 */
export function quantiles(q: number, values: Float64Array, budget: Budget): WindowFunction {
  if (Number.isNaN(q)) return () => Number.NaN;
  if (q < 0) return () => Number.NEGATIVE_INFINITY;
  if (q > 1) return () => Number.POSITIVE_INFINITY;
  let ranked: RankedWindow | undefined;
  let lastTo = 0;
  return (from, to) => {
    const overlap = lastTo - from;
    lastTo = to;
    if (ranked === undefined && to - from > fewValues && overlap * 2 > to - from)
      ranked = new RankedWindow(values);
    budget.work(ranked === undefined ? to - from : 1);
    if (ranked === undefined) return quantileOf(q, values.slice(from, to));
    ranked.move(from, to);
    return interpolate(q, to - from, (rank) => ranked!.valueAt(rank));
  };
}

function interpolate(q: number, count: number, valueAt: (rank: number) => number): number {
  const rank = q * (count - 1);
  const lower = Math.floor(rank);
  const upper = Math.min(lower + 1, count - 1);
  const weight = rank - lower;
  return valueAt(lower) * (1 - weight) + valueAt(upper) * weight;
}

/** The quantile of some values, at least one; reorders them. */
function quantileOf(q: number, values: Float64Array): number {
  const nans = moveNansToFront(values);
  // Ranks are asked for upwards, and everything behind a selected one is not smaller.
  let selected = nans;
  return interpolate(q, values.length, (rank) => {
    if (rank < nans) return Number.NaN;
    const value = select(values, rank, selected);
    selected = rank;
    return value;
  });
}

function moveNansToFront(values: Float64Array): number {
  let nans = 0;
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as number;
    if (!Number.isNaN(value)) continue;
    values[i] = values[nans] as number;
    values[nans++] = value;
  }
  return nans;
}

/** The value of a rank, when the values before `low` are none of those above; sets it in its place. */
function select(values: Float64Array, rank: number, low: number): number {
  let left = low;
  let right = values.length - 1;
  while (left < right) {
    const pivot = medianOfThree(values, left, right);
    let i = left - 1;
    let j = right + 1;
    for (;;) {
      do i++;
      while ((values[i] as number) < pivot);
      do j--;
      while ((values[j] as number) > pivot);
      if (i >= j) break;
      swap(values, i, j);
    }
    if (rank <= j) right = j;
    else left = j + 1;
  }
  return values[rank] as number;
}

function medianOfThree(values: Float64Array, left: number, right: number): number {
  const a = values[left] as number;
  const b = values[(left + right) >>> 1] as number;
  const c = values[right] as number;
  return Math.max(Math.min(a, b), Math.min(Math.max(a, b), c));
}

function swap(values: Float64Array, i: number, j: number): void {
  const value = values[i] as number;
  values[i] = values[j] as number;
  values[j] = value;
}
