import type { Labels } from "@skald/model";
import { Budget, tooManyCells } from "../plan/budget.js";
import { type LeafPlan, wantsTimes } from "../plan/plan.js";
import type { LeafMode } from "../syntax/ast.js";
import {
  addValue,
  type CellEnd,
  CellTable,
  hasExtra,
  keepEnd,
  keepExtreme,
  keepsEnd,
  type SampleColumns,
} from "./cells.js";
import { SeriesIndex } from "./series.js";

/**
 * What one scan accumulated: plain data for a structured clone (`transferablesOf` lists its buffers). Series s has
 * entries `start[s] .. start[s+1]) of the columns: in mode `samples` one per row, else one per bucket of time that
 * has rows (see window-grid.ts for buckets). Buckets ascend within a series, and samples by (bucket, time).
 */
export interface MetricPartial {
  readonly mode: LeafMode;
  readonly labels: readonly Labels[];
  /** length: series + 1 */
  readonly start: Uint32Array;
  readonly bucket: Uint32Array;
  /** Rows of the bucket; empty in mode `samples`. */
  readonly count: Float64Array;
  /** bytes, sum, least, greatest, mean, or the value; empty in mode `count`. */
  readonly value: Float64Array;
  /** Modes first, last and samples: ns since `lastWindowEnd`; moments: sum of squared differences from the mean. */
  readonly extra: Float64Array;
  /** Modes first and last: keys of the streams of the values. */
  readonly stream: Float64Array;
}

const none = new Float64Array(0);

/** The partial of a scan that accumulated by bucket. */
export function partialOfCells(
  mode: LeafMode,
  labels: readonly Labels[],
  cells: CellTable,
): MetricPartial {
  const order = cells.order();
  const { length } = order;
  const bucket = new Uint32Array(length);
  for (let i = 0; i < length; i++) bucket[i] = cells.bucket[order[i]!]!;
  return {
    mode,
    labels,
    start: startsOfSeries(labels.length, cells, order, () => 1),
    bucket,
    count: picked(cells.rows, order),
    value: mode === "count" ? none : picked(cells.value, order),
    extra: hasExtra(mode) ? picked(cells.extra, order) : none,
    stream: keepsEnd(mode) ? picked(cells.stream, order) : none,
  };
}

/** The partial of a scan that kept every sample: ordered by series, bucket, and time if there are times. */
export function partialOfSamples(
  labels: readonly Labels[],
  cells: CellTable,
  samples: SampleColumns,
): MetricPartial {
  const sorted = new SortedSamples(cells, samples.count, samples.time.length > 0);
  const { next, value, time } = sorted;
  for (let i = 0; i < samples.count; i++) {
    const at = next[samples.cell[i]!]!++;
    value[at] = samples.value[i]!;
    if (time.length > 0) time[at] = samples.time[i]!;
  }
  return sorted.finish(labels);
}

/** Samples in the order of a partial. Rows of each cell are written from `next` on, which the writer moves. */
class SortedSamples {
  /** By cell. */
  readonly next: Uint32Array;
  readonly value: Float64Array;
  /** Empty where times are not wanted. */
  readonly time: Float64Array;
  readonly #cells: CellTable;
  readonly #order: Uint32Array;
  readonly #bucket: Uint32Array;

  constructor(cells: CellTable, count: number, withTimes: boolean) {
    this.#cells = cells;
    this.#order = cells.order();
    this.#bucket = new Uint32Array(count);
    this.next = new Uint32Array(cells.count);
    this.value = new Float64Array(count);
    this.time = withTimes ? new Float64Array(count) : none;
    let total = 0;
    for (const cell of this.#order) {
      const rows = cells.rows[cell]!;
      this.next[cell] = total;
      this.#bucket.fill(cells.bucket[cell]!, total, total + rows);
      total += rows;
    }
  }

  /** The partial, when the rows of all cells are written. */
  finish(labels: readonly Labels[]): MetricPartial {
    const cells = this.#cells;
    if (this.time.length > 0) {
      for (const cell of this.#order) {
        const end = this.next[cell]!;
        sortByTime(this.time, this.value, end - cells.rows[cell]!, end);
      }
    }
    const rowsOf = (cell: number) => cells.rows[cell]!;
    const start = startsOfSeries(labels.length, cells, this.#order, rowsOf);
    const { value, time: extra } = this;
    const columns = { start, bucket: this.#bucket, count: none, value, extra, stream: none };
    return { mode: "samples", labels, ...columns };
  }
}

/** Sorts the samples of [from, to) by time; equal times keep their order. */
function sortByTime(time: Float64Array, value: Float64Array, from: number, to: number): void {
  let sorted = true;
  for (let i = from + 1; sorted && i < to; i++) {
    sorted = time[i - 1]! <= time[i]!;
  }
  if (sorted) return;
  const order = Array.from({ length: to - from }, (_, i) => from + i);
  order.sort((a, b) => time[a]! - time[b]! || a - b);
  const times = order.map((i) => time[i]!);
  const values = order.map((i) => value[i]!);
  time.set(times, from);
  value.set(values, from);
}

function startsOfSeries(
  seriesCount: number,
  cells: CellTable,
  order: Uint32Array,
  entriesOf: (cell: number) => number,
): Uint32Array {
  const start = new Uint32Array(seriesCount + 1);
  for (const cell of order) start[cells.series[cell]! + 1]! += entriesOf(cell);
  for (let s = 0; s < seriesCount; s++) start[s + 1]! += start[s]!;
  return start;
}

function picked(column: Float64Array, order: Uint32Array): Float64Array {
  const out = new Float64Array(order.length);
  for (let i = 0; i < order.length; i++) out[i] = column[order[i]!]!;
  return out;
}

/** One partial from several of the same leaf: what a scan of all their rows would have given. */
export function combineMetricPartials(
  leaf: LeafPlan,
  partials: readonly MetricPartial[],
  budget: Budget = new Budget(),
): MetricPartial {
  const [first] = partials;
  if (partials.length === 1 && first !== undefined) return first;
  const { mode } = leaf;
  if (mode === "samples") return combineSamples(leaf, partials, budget);
  const index = new SeriesIndex(leaf);
  const cells = new CellTable(mode, leaf.maxCells);
  const join = joinCell[mode];
  for (const partial of partials) {
    for (let s = 0; s < partial.labels.length; s++) {
      const series = index.find(partial.labels[s]!);
      const from = partial.start[s] as number;
      const to = partial.start[s + 1] as number;
      budget.work(1 + partial.labels[s]!.names.length + to - from);
      for (let i = from; i < to; i++) {
        join(cells, cells.find(series, partial.bucket[i] as number), partial, i);
      }
    }
  }
  return partialOfCells(mode, index.labels, cells);
}

/** Samples of one bucket stand together, so they are counted and copied as a stretch, not one by one. */
function combineSamples(
  leaf: LeafPlan,
  partials: readonly MetricPartial[],
  budget: Budget,
): MetricPartial {
  const index = new SeriesIndex(leaf);
  const cells = new CellTable(leaf.mode, leaf.maxCells);
  let total = 0;
  const seriesOf = partials.map(({ labels, start, bucket }) =>
    Uint32Array.from(labels, (own, s) => {
      const series = index.find(own);
      const from = start[s]!;
      const to = start[s + 1]!;
      budget.work(1 + own.names.length + to - from);
      total += to - from;
      if (total > leaf.maxCells) throw tooManyCells(leaf.maxCells);
      forEachBucket(bucket, from, to, (of, first, end) => {
        cells.rows[cells.find(series, of)]! += end - first;
      });
      return series;
    }),
  );
  const sorted = new SortedSamples(cells, total, wantsTimes(leaf));
  const { next, value, time } = sorted;
  partials.forEach((partial, place) => {
    seriesOf[place]!.forEach((series, s) => {
      const { start, bucket } = partial;
      forEachBucket(bucket, start[s]!, start[s + 1]!, (of, first, end) => {
        const cell = cells.find(series, of);
        let at = next[cell]!;
        for (let i = first; i < end; i++) {
          value[at] = partial.value[i]!;
          if (time.length > 0) time[at] = partial.extra[i]!;
          at++;
        }
        next[cell] = at;
      });
    });
  });
  return sorted.finish(index.labels);
}

/** Calls back for each stretch of equal buckets. */
function forEachBucket(
  bucket: Uint32Array,
  from: number,
  to: number,
  visit: (bucket: number, from: number, to: number) => void,
): void {
  for (let first = from; first < to; ) {
    const of = bucket[first]!;
    let end = first + 1;
    while (end < to && bucket[end] === of) end++;
    visit(of, first, end);
    first = end;
  }
}

type JoinCell = (cells: CellTable, cell: number, partial: MetricPartial, i: number) => void;

const joinCell: Readonly<Record<Exclude<LeafMode, "samples">, JoinCell>> = {
  count: (cells, cell, partial, i) => {
    cells.rows[cell]! += partial.count[i] as number;
  },
  bytes: joinSums,
  sum: joinSums,
  min: (cells, cell, partial, i) => joinExtremes(cells, cell, partial, i, 1),
  max: (cells, cell, partial, i) => joinExtremes(cells, cell, partial, i, -1),
  moments: (cells, cell, partial, i) => {
    const joined = joinMoments(
      { count: cells.rows[cell]!, mean: cells.value[cell]!, squares: cells.extra[cell]! },
      { count: partial.count[i]!, mean: partial.value[i]!, squares: partial.extra[i]! },
    );
    cells.rows[cell] = joined.count;
    cells.value[cell] = joined.mean;
    cells.extra[cell] = joined.squares;
  },
  first: (cells, cell, partial, i) => keepEnd(cells, cell, 1, endOf(partial, i)),
  last: (cells, cell, partial, i) => keepEnd(cells, cell, -1, endOf(partial, i)),
};

function joinSums(cells: CellTable, cell: number, partial: MetricPartial, i: number): void {
  addValue(cells, cell, partial.count[i]!, partial.value[i]!);
}

function joinExtremes(
  cells: CellTable,
  cell: number,
  partial: MetricPartial,
  i: number,
  sign: 1 | -1,
): void {
  keepExtreme(cells, cell, sign, partial.value[i]!);
  cells.rows[cell]! += partial.count[i]!;
}

function endOf({ count, value, extra, stream }: MetricPartial, i: number): CellEnd {
  return { rows: count[i]!, value: value[i]!, time: extra[i]!, stream: stream[i]! };
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
