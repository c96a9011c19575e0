import { lowerBound, unreachable } from "@skald/model";
import type { Budget } from "../plan/budget.js";
import type { LeafPlan, RangeFunction } from "../plan/plan.js";
import { joinMoments, type Moments } from "../scan/partial.js";

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

/** The columns of one series of a MetricPartial. */
export interface Entries {
  readonly bucket: Uint32Array;
  readonly count: Float64Array;
  readonly value: Float64Array;
  readonly extra: Float64Array;
}

/** Value of the window that has the entries from .. to - 1 (at least one); windows are asked for in order. */
export type WindowFunction = (from: number, to: number, point: number) => number;

/**
 * Folds windows that move forward over a list of items, each item combined a bounded number of times however wide
 * the windows are, and without subtraction: sums keep their precision, NaN and infinities leave with their item.
 *
 * Items before `#middle` are folded from the right, once when the window reaches them; later ones from the left.
 */
class SlidingFold<T> {
  readonly #item: (i: number) => T;
  readonly #combine: (a: T, b: T) => T;
  /** `#suffixes[i]` folds the items i .. #middle - 1. */
  readonly #suffixes: T[];
  #middle = 0;
  /** Folds the items #middle .. #end - 1; undefined when there are none. */
  #tail: T | undefined;
  #end = 0;

  constructor(length: number, item: (i: number) => T, combine: (a: T, b: T) => T) {
    this.#item = item;
    this.#combine = combine;
    this.#suffixes = new Array<T>(length);
  }

  /** The fold of the items from .. to - 1, at least one; neither end may go back. */
  fold(from: number, to: number): T {
    if (from >= this.#middle) this.#turn(from, to);
    for (; this.#end < to; this.#end++) {
      const item = this.#item(this.#end);
      this.#tail = this.#tail === undefined ? item : this.#combine(this.#tail, item);
    }
    const head = this.#suffixes[from] as T;
    return this.#tail === undefined ? head : this.#combine(head, this.#tail);
  }

  #turn(from: number, to: number): void {
    let folded = this.#item(to - 1);
    this.#suffixes[to - 1] = folded;
    for (let i = to - 2; i >= from; i--) {
      folded = this.#combine(this.#item(i), folded);
      this.#suffixes[i] = folded;
    }
    this.#middle = to;
    this.#end = to;
    this.#tail = undefined;
  }
}

/**
 * rate_counter: the increase per second of a counter that may start again from 0, extended to the borders of the
 * window where its samples come close to them. Fewer than two samples give 0.
 */
function rateOfCounter(leaf: LeafPlan, { value, extra }: Entries): WindowFunction {
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

/**
 * A window that moves forward over values and knows the value of each rank in it: a binary indexed tree counts the
 * values of the window by their place in the order of all values. Moving and asking take log(values) steps each.
 */
class RankedWindow {
  /** Place of each value in `#sorted`, from 1. */
  readonly #place: Uint32Array;
  /** All values, NaN first. */
  readonly #sorted: Float64Array;
  readonly #tree: Uint32Array;
  readonly #highestStep: number;
  #from = 0;
  #to = 0;

  constructor(values: Float64Array) {
    const ascending = values.slice().sort();
    let numbers = ascending.length;
    while (numbers > 0 && Number.isNaN(ascending[numbers - 1])) numbers--;
    const nans = ascending.length - numbers;
    this.#sorted = new Float64Array(values.length).fill(Number.NaN, 0, nans);
    this.#sorted.set(ascending.subarray(0, numbers), nans);
    // Equal values share the first of their places.
    this.#place = Uint32Array.from(values, (value) =>
      Number.isNaN(value) ? 1 : lowerBound(this.#sorted, value, nans) + 1,
    );
    this.#tree = new Uint32Array(values.length + 1);
    this.#highestStep = 2 ** Math.floor(Math.log2(Math.max(values.length, 1)));
  }

  /** Moves to the values from .. to - 1; neither end may go back. */
  move(from: number, to: number): void {
    if (from >= this.#to) {
      while (this.#from < this.#to) this.#add(this.#from++, -1);
      this.#from = from;
      this.#to = from;
    }
    while (this.#to < to) this.#add(this.#to++, 1);
    while (this.#from < from) this.#add(this.#from++, -1);
  }

  /** The value that has `rank` values of the window before it. */
  valueAt(rank: number): number {
    let place = 0;
    let left = rank;
    for (let step = this.#highestStep; step > 0; step >>>= 1) {
      const next = place + step;
      if (next < this.#tree.length && this.#tree[next]! <= left) {
        place = next;
        left -= this.#tree[next]!;
      }
    }
    return this.#sorted[place] as number;
  }

  #add(index: number, change: 1 | -1): void {
    for (let at = this.#place[index]!; at < this.#tree.length; at += at & -at) {
      this.#tree[at]! += change;
    }
  }
}
