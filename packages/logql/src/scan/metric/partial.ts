import type { Labels } from "@skald/model";
import type { LeafMode } from "../../plan/plan.js";
import type { SampleColumns } from "./accumulate.js";
import { type CellTable, hasExtra, keepsEnd } from "./cells.js";

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

/** The buffers of a partial, to be moved to another thread instead of copied. */
export function transferablesOf(partial: MetricPartial): ArrayBuffer[] {
  const columns = [
    partial.start,
    partial.bucket,
    partial.count,
    partial.value,
    partial.extra,
    partial.stream,
  ];
  return columns.map((column) => column.buffer as ArrayBuffer);
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

/** The partial of a scan that kept every sample: ordered by series, bucket, and time if times are wanted. */
export function partialOfSamples(
  labels: readonly Labels[],
  cells: CellTable,
  samples: SampleColumns,
  withTimes: boolean,
): MetricPartial {
  const order = cells.order();
  const place = new Uint32Array(cells.count);
  const bucket = new Uint32Array(samples.count);
  let total = 0;
  for (const cell of order) {
    const rows = cells.rows[cell]!;
    place[cell] = total;
    bucket.fill(cells.bucket[cell]!, total, total + rows);
    total += rows;
  }
  const value = new Float64Array(samples.count);
  const time = withTimes ? new Float64Array(samples.count) : none;
  const next = place.slice();
  for (let i = 0; i < samples.count; i++) {
    const at = next[samples.cell[i]!]!++;
    value[at] = samples.value[i]!;
    if (withTimes) time[at] = samples.time[i]!;
  }
  if (withTimes) {
    for (const cell of order) {
      const from = place[cell]!;
      sortByTime(time, value, from, from + cells.rows[cell]!);
    }
  }
  const start = startsOfSeries(labels.length, cells, order, (cell) => cells.rows[cell]!);
  const columns = { start, bucket, count: none, value, extra: time, stream: none };
  return { mode: "samples", labels, ...columns };
}

/** Sorts the samples of [from, to) by time; equal times keep their order. */
export function sortByTime(
  time: Float64Array,
  value: Float64Array,
  from: number,
  to: number,
): void {
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
