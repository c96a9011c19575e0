import { unreachable } from "@skald/model";
import type { Budget } from "../plan/budget.js";
import type { LeafPlan, RangeFunction } from "../plan/plan.js";
import { rateOfCounter } from "./counter.js";
import type { Entries, WindowFunction } from "./entries.js";
import { quantiles } from "./quantile.js";
import { SlidingFold } from "./sliding.js";

/** One of the functions of a leaf over the entries of one series. */
export function windowFunction(
  leaf: LeafPlan,
  { op, parameter = Number.NaN }: RangeFunction,
  entries: Entries,
  budget: Budget,
): WindowFunction {
  const { value, count } = entries;
  const seconds = Number(leaf.windows.rangeNs) / 1e9;
  switch (op) {
    case "count_over_time":
    case "absent_over_time":
      return integerSums(count);
    case "bytes_over_time":
      return integerSums(value);
    case "rate": {
      const total = leaf.mode === "sum" ? sums(value) : integerSums(count);
      return (from, to, point) => total(from, to, point) / seconds;
    }
    case "bytes_rate": {
      const total = integerSums(value);
      return (from, to, point) => total(from, to, point) / seconds;
    }
    case "sum_over_time":
      return sums(value);
    case "avg_over_time": {
      const total = sums(value);
      const rows = integerSums(count);
      return (from, to, point) => total(from, to, point) / rows(from, to, point);
    }
    case "min_over_time":
      return extremes(value, (a, b) => b < a);
    case "max_over_time":
      return extremes(value, (a, b) => b > a);
    case "stdvar_over_time":
      return variances(entries);
    case "stddev_over_time": {
      const variance = variances(entries);
      return (from, to, point) => Math.sqrt(variance(from, to, point));
    }
    case "first_over_time":
      return (from) => value[from] as number;
    case "last_over_time":
      return (_, to) => value[to - 1] as number;
    case "quantile_over_time":
      return quantiles(parameter, value, budget);
    case "rate_counter":
      return rateOfCounter(leaf, entries);
    default:
      return unreachable(op);
  }
}

/** Sums of whole numbers, which are exact, so that a difference of running totals is exact too. */
function integerSums(column: Float64Array): WindowFunction {
  const totals = new Float64Array(column.length + 1);
  for (let i = 0; i < column.length; i++) totals[i + 1] = totals[i]! + column[i]!;
  return (from, to) => (totals[to] as number) - (totals[from] as number);
}

function sums(column: Float64Array): WindowFunction {
  const sliding = new SlidingFold<number>(
    column.length,
    (i) => column[i] as number,
    (a, b) => a + b,
  );
  return (from, to) => sliding.fold(from, to);
}

function extremes(
  column: Float64Array,
  isBetter: (a: number, b: number) => boolean,
): WindowFunction {
  const sliding = new SlidingFold<number>(
    column.length,
    (i) => column[i] as number,
    (a, b) => (Number.isNaN(a) || isBetter(a, b) ? b : a),
  );
  return (from, to) => sliding.fold(from, to);
}

function variances({ count, value, extra }: Entries): WindowFunction {
  const sliding = new SlidingFold<Moments>(
    value.length,
    (i) => ({ count: count[i]!, mean: value[i]!, squares: extra[i]! }),
    joinMoments,
  );
  return (from, to) => {
    const moments = sliding.fold(from, to);
    return moments.squares / moments.count;
  };
}

/** Count, mean and sum of squared differences from the mean of some values. */
export interface Moments {
  readonly count: number;
  readonly mean: number;
  readonly squares: number;
}

/** The moments of two sets of values together. */
export function joinMoments(a: Moments, b: Moments): Moments {
  if (a.count === 0) return b;
  if (b.count === 0) return a;
  const count = a.count + b.count;
  const delta = b.mean - a.mean;
  return {
    count,
    mean: a.mean + (delta * b.count) / count,
    squares: a.squares + b.squares + (delta * delta * a.count * b.count) / count,
  };
}
