import type { LeafPlan } from "../plan/plan.js";
import type { Entries, WindowFunction } from "./entries.js";
import { SlidingFold } from "./sliding.js";

/**
 * rate_counter: the increase per second of a counter that may start again from 0, extended to the borders of the
 * window where its samples come close to them. Fewer than two samples give 0.
 */
export function rateOfCounter(leaf: LeafPlan, { value, extra }: Entries): WindowFunction {
  const seconds = Number(leaf.windows.rangeNs) / 1e9;
  const losses = lossesOf(value);
  return (from, to, point) => {
    if (to - from < 2) return 0;
    // Times are counted from the last point: the last ns of its window, whose end is exclusive.
    const windowEnd = -secondsBetween(leaf, point);
    const first = (extra[from]! + 1) / 1e9;
    const last = (extra[to - 1]! + 1) / 1e9;
    const increase = value[to - 1]! - value[from]! + losses.fold(from + 1, to);
    const sampled = last - first;
    const gap = sampled / (to - from - 1);
    const before = gapBefore(first - (windowEnd - seconds), value[from]!, increase, sampled);
    const covered = sampled + extension(before, gap) + extension(windowEnd - last, gap);
    return (increase * (covered / sampled)) / seconds;
  };
}

/** Seconds from a point to the last point. */
function secondsBetween({ windows }: LeafPlan, point: number): number {
  return Number(windows.stepNs * BigInt(windows.count - 1 - point)) / 1e9;
}

/** What the counter lost at each sample by falling. */
function lossesOf(value: Float64Array): SlidingFold<number> {
  const loss = (i: number) => (value[i]! < value[i - 1]! ? value[i - 1]! : 0);
  return new SlidingFold<number>(value.length, loss, (a, b) => a + b);
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
