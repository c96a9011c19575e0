import type { LeafPlan } from "./plan.js";
import type { Entries, WindowFunction } from "./range-function.js";

/**
 * rate_counter: the increase per second of a counter that may start again from 0, extended to the borders of the
 * window where its samples come close to them. Fewer than two samples give 0.
 */
export function rateOfCounter(leaf: LeafPlan, { value, extra }: Entries): WindowFunction {
  const seconds = Number(leaf.rangeNs) / 1e9;
  return (from, to, point) => {
    if (to - from < 2) return 0;
    // Times are counted from the end of the last window.
    const windowEnd = -secondsBetween(leaf, point);
    const first = (extra[from] as number) / 1e9;
    const last = (extra[to - 1] as number) / 1e9;
    const increase = increaseOf(value, from, to);
    const sampled = last - first;
    const gap = sampled / (to - from - 1);
    const before = gapBefore(first - (windowEnd - seconds), value[from]!, increase, sampled);
    const covered = sampled + extension(before, gap) + extension(windowEnd - last, gap);
    return (increase * (covered / sampled)) / seconds;
  };
}

/** Seconds from a point to the last point. */
function secondsBetween({ points }: LeafPlan, point: number): number {
  return Number(points.stepNs * BigInt(points.count - 1 - point)) / 1e9;
}

/** The difference of the ends plus what was lost whenever the counter fell. */
function increaseOf(value: Float64Array, from: number, to: number): number {
  let lost = 0;
  for (let i = from + 1; i < to; i++) {
    if ((value[i] as number) < (value[i - 1] as number)) lost += value[i - 1] as number;
  }
  return (value[to - 1] as number) - (value[from] as number) + lost;
}

/** Seconds before the first sample that count: not beyond the time when the counter was 0. */
function gapBefore(toBorder: number, first: number, increase: number, sampled: number): number {
  if (increase <= 0 || first < 0) return toBorder;
  return Math.min(toBorder, sampled * (first / increase));
}

/** A border further away than a usual gap is not reached: half a gap is added instead. */
function extension(toBorder: number, gap: number): number {
  return toBorder < gap * 1.1 ? toBorder : gap / 2;
}
