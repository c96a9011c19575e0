import { grown } from "@skald/kernels";
import { HashIndex } from "../pipeline/row/key-table.js";
import { tooManyCells } from "../plan/budget.js";
import type { LeafMode } from "../syntax/ast.js";

const initialCells = 256;
/** Ids below this are remembered while rows of one bucket are added. */
const maxRememberedIds = 8192;
const noStamps = new Float64Array(0);
const noCells = new Uint32Array(0);

/**
 * Accumulators by series and bucket, only for the pairs that have rows: a hash table whose columns grow
 * together. A cell keeps its number.
 */
export class CellTable {
  count = 0;
  series = new Uint32Array(initialCells);
  bucket = new Uint32Array(initialCells);
  /** Rows, and what the mode keeps besides; see MetricPartial. */
  rows = new Float64Array(initialCells);
  /** Has a length only in modes that use it; so have `extra` and `stream`. */
  value: Float64Array;
  extra: Float64Array;
  stream: Float64Array;
  readonly #index = new HashIndex();
  readonly #maxCells: number;
  /** `#cellOfId[id]` is meant while `#stamps[id]` is the present stamp, which changes with the bucket. */
  #stamps = noStamps;
  #cellOfId = noCells;
  #rememberedBucket = -1;
  #stamp = 0;

  constructor(mode: LeafMode, maxCells: number) {
    this.#maxCells = maxCells;
    const hasValue = mode !== "count" && mode !== "samples";
    this.value = new Float64Array(hasValue ? initialCells : 0);
    this.extra = new Float64Array(hasExtra(mode) ? initialCells : 0);
    this.stream = new Float64Array(keepsEnd(mode) ? initialCells : 0);
  }

  /** The cell of a pair; a new one has `rows` 0. */
  find(series: number, bucket: number): number {
    let cell = this.#index.first(hash(series, bucket));
    while (cell >= 0 && (this.series[cell] !== series || this.bucket[cell] !== bucket)) {
      cell = this.#index.next();
    }
    return cell >= 0 ? cell : this.#add(series, bucket);
  }

  /**
   * The cell of a row whose series is known by another id: rows of one bucket in any mix of series find theirs without
   * hashing. Call `startRows` before, wherever ids may mean other series than before.
   */
  findById(id: number, bucket: number, seriesOf: (id: number) => number): number {
    if (bucket !== this.#rememberedBucket) {
      this.#rememberedBucket = bucket;
      this.#stamp++;
    }
    const isRemembered = id < this.#stamps.length && this.#stamps[id] === this.#stamp;
    if (isRemembered) return this.#cellOfId[id]!;
    const cell = this.find(seriesOf(id), bucket);
    if (id < maxRememberedIds) {
      if (id >= this.#stamps.length) this.#remember(id);
      this.#stamps[id] = this.#stamp;
      this.#cellOfId[id] = cell;
    }
    return cell;
  }

  startRows(): void {
    this.#rememberedBucket = -1;
  }

  /** Cell numbers ordered by series, then bucket. */
  order(): Uint32Array {
    const { count, series, bucket } = this;
    let width = 1;
    for (let i = 0; i < count; i++) width = Math.max(width, bucket[i]! + 1);
    // Plain numbers sort several times faster than cells through a comparison.
    const keys = new Float64Array(count);
    for (let i = 0; i < count; i++) keys[i] = series[i]! * width + bucket[i]!;
    keys.sort();
    const order = new Uint32Array(count);
    for (let i = 0; i < count; i++) {
      const key = keys[i]!;
      const owner = Math.floor(key / width);
      order[i] = this.find(owner, key - owner * width);
    }
    return order;
  }

  #add(series: number, bucket: number): number {
    if (this.count >= this.#maxCells) throw tooManyCells(this.#maxCells);
    if (this.count === this.series.length) this.#grow();
    const cell = this.#index.add();
    this.series[cell] = series;
    this.bucket[cell] = bucket;
    this.count = cell + 1;
    return cell;
  }

  #remember(id: number): void {
    const length = Math.min(maxRememberedIds, Math.max(64, 2 ** Math.ceil(Math.log2(id + 1))));
    this.#stamps = grown(this.#stamps, length);
    this.#cellOfId = grown(this.#cellOfId, length);
  }

  #grow(): void {
    const length = this.series.length * 2;
    this.series = grown(this.series, length);
    this.bucket = grown(this.bucket, length);
    this.rows = grown(this.rows, length);
    if (this.value.length > 0) this.value = grown(this.value, length);
    if (this.extra.length > 0) this.extra = grown(this.extra, length);
    if (this.stream.length > 0) this.stream = grown(this.stream, length);
  }
}

/** True when a cell has more than its rows and one value. */
export function hasExtra(mode: LeafMode): boolean {
  return mode === "moments" || keepsEnd(mode);
}

/** True when a cell is one of its rows. */
export function keepsEnd(mode: LeafMode): boolean {
  return mode === "first" || mode === "last";
}

function hash(series: number, bucket: number): number {
  const mixed = Math.imul(series, 0x9e3779b1) ^ Math.imul(bucket + 1, 0x85ebca6b);
  return mixed ^ (mixed >>> 15);
}

/** Rows to be added: what a pipeline left of a block, with the bucket of each row. */
interface AddedRows {
  readonly count: number;
  /** Row numbers of the block. */
  readonly rows: Uint32Array;
  /** Some id of each row's series; equal ids, equal series. */
  readonly series: Uint32Array;
  /** Series of the leaf by that id. Throws when rows of it must fail the query. */
  readonly seriesOf: (id: number) => number;
  /** By row number. */
  readonly bucketOfRow: Uint32Array;
  /** Unwrapped values, by position. */
  readonly values: Float64Array;
  /** ns since the base of the block, by row number. */
  readonly times: Float64Array;
  /** Added to a time gives ns since the end of the leaf. */
  readonly timeShift: number;
  /** Key of the stream of a row; rows are asked for in ascending order. */
  readonly streamKeyOf: (row: number) => number;
  /** Bounds of line i of `lineAt(i)`: by position if a stage changed lines, else by row number. */
  readonly lineOffsets: Uint32Array;
  readonly linesByPosition: boolean;
}

type Accumulate = (cells: CellTable, added: AddedRows) => void;

/** How the rows of each mode are added to cells; the mode `samples` keeps them in columns of its own. */
export const accumulators: Readonly<Record<Exclude<LeafMode, "samples">, Accumulate>> = {
  count: addCounts,
  bytes: addBytes,
  sum: addSums,
  min: (cells, added) => addExtremes(cells, added, 1),
  max: (cells, added) => addExtremes(cells, added, -1),
  moments: addMoments,
  first: (cells, added) => addEnds(cells, added, 1),
  last: (cells, added) => addEnds(cells, added, -1),
};

function addCounts(cells: CellTable, added: AddedRows): void {
  const { count, rows, series, seriesOf, bucketOfRow } = added;
  cells.startRows();
  let cell = -1;
  let lastSeries = -1;
  let lastBucket = -1;
  let pending = 0;
  for (let i = 0; i < count; i++) {
    const id = series[i]!;
    const bucket = bucketOfRow[rows[i]!]!;
    if (id !== lastSeries || bucket !== lastBucket) {
      if (pending > 0) cells.rows[cell]! += pending;
      pending = 0;
      cell = cells.findById(id, bucket, seriesOf);
      lastSeries = id;
      lastBucket = bucket;
    }
    pending++;
  }
  if (pending > 0) cells.rows[cell]! += pending;
}

function addBytes(cells: CellTable, added: AddedRows): void {
  const { rows, lineOffsets, linesByPosition } = added;
  forEachCell(cells, added, (cell, i) => {
    const line = linesByPosition ? i : rows[i]!;
    addValue(cells, cell, 1, lineOffsets[line + 1]! - lineOffsets[line]!);
  });
}

function addSums(cells: CellTable, added: AddedRows): void {
  const { values } = added;
  forEachCell(cells, added, (cell, i) => addValue(cells, cell, 1, values[i]!));
}

function addExtremes(cells: CellTable, added: AddedRows, sign: 1 | -1): void {
  const { values } = added;
  forEachCell(cells, added, (cell, i) => {
    keepExtreme(cells, cell, sign, values[i]!);
    cells.rows[cell]! += 1;
  });
}

/** Adds rows, and the sum of their values or bytes, to a cell. */
export function addValue(cells: CellTable, cell: number, rows: number, value: number): void {
  cells.rows[cell]! += rows;
  cells.value[cell]! += value;
}

/** Keeps the least value, or with sign -1 the greatest; call it before the rows are counted. A NaN gives way to any number. */
export function keepExtreme(cells: CellTable, cell: number, sign: 1 | -1, value: number): void {
  const kept = cells.value[cell]!;
  const isFirst = cells.rows[cell] === 0;
  if (isFirst || Number.isNaN(kept) || sign * value < sign * kept) cells.value[cell] = value;
}
/** Mean in `value`, sum of squared differences in `extra`, by Welford's recurrence. */
function addMoments(cells: CellTable, added: AddedRows): void {
  const { values } = added;
  forEachCell(cells, added, (cell, i) => {
    const value = values[i]!;
    const rows = cells.rows[cell]! + 1;
    const delta = value - cells.value[cell]!;
    const mean = cells.value[cell]! + delta / rows;
    cells.rows[cell] = rows;
    cells.value[cell] = mean;
    cells.extra[cell]! += delta * (value - mean);
  });
}

/** Keeps the first value, with its time and the key of its stream; with sign -1 the last. */
function addEnds(cells: CellTable, added: AddedRows, sign: 1 | -1): void {
  const { rows, values, times, timeShift, streamKeyOf } = added;
  forEachCell(cells, added, (cell, i) => {
    const row = rows[i]!;
    keepEnd(cells, cell, sign, {
      rows: 1,
      value: values[i]!,
      time: times[row]! + timeShift,
      stream: streamKeyOf(row),
    });
  });
}

/** Rows of a cell, and which of them ends it. */
export interface CellEnd {
  readonly rows: number;
  readonly value: number;
  /** ns since the end of the leaf */
  readonly time: number;
  /** Key of its stream. */
  readonly stream: number;
}

/**
 * Keeps the row with the smallest time, with sign -1 the greatest: of equal ones as rows of an answer are ordered, by
 * stream, then as they came.
 */
export function keepEnd(cells: CellTable, cell: number, sign: 1 | -1, end: CellEnd): void {
  const isFirst = cells.rows[cell] === 0;
  cells.rows[cell]! += end.rows;
  if (!isFirst) {
    const distance = end.time - cells.extra[cell]! || end.stream - cells.stream[cell]!;
    if (sign > 0 ? distance >= 0 : distance < 0) return;
  }
  cells.value[cell] = end.value;
  cells.extra[cell] = end.time;
  cells.stream[cell] = end.stream;
}

function forEachCell(
  cells: CellTable,
  added: AddedRows,
  visit: (cell: number, position: number) => void,
): void {
  const { count, rows, series, seriesOf, bucketOfRow } = added;
  cells.startRows();
  for (let i = 0; i < count; i++) {
    const bucket = bucketOfRow[rows[i]!]!;
    visit(cells.findById(series[i]!, bucket, seriesOf), i);
  }
}

const initialSamples = 1024;
const noTimes = new Float64Array(0);

/** The rows of mode `samples` in order of arrival: cell, value and time. Cells count their rows. */
export class SampleColumns {
  count = 0;
  cell = new Uint32Array(initialSamples);
  value = new Float64Array(initialSamples);
  /** ns since the end of the leaf; empty where times are not wanted. */
  time: Float64Array;
  readonly #maxSamples: number;

  constructor(maxSamples: number, withTimes: boolean) {
    this.#maxSamples = maxSamples;
    this.time = withTimes ? new Float64Array(initialSamples) : noTimes;
  }

  add(cells: CellTable, added: AddedRows): void {
    const { count, rows, series, seriesOf, bucketOfRow, values, times, timeShift } = added;
    const first = this.count;
    if (first + count > this.#maxSamples) throw tooManyCells(this.#maxSamples);
    if (first + count > this.cell.length) this.#grow(first + count);
    cells.startRows();
    let cell = -1;
    let lastSeries = -1;
    let lastBucket = -1;
    for (let i = 0; i < count; i++) {
      const id = series[i]!;
      const bucket = bucketOfRow[rows[i]!]!;
      if (id !== lastSeries || bucket !== lastBucket) {
        cell = cells.findById(id, bucket, seriesOf);
        lastSeries = id;
        lastBucket = bucket;
      }
      cells.rows[cell]! += 1;
      this.cell[first + i] = cell;
    }
    this.value.set(count === values.length ? values : values.subarray(0, count), first);
    if (this.time.length > 0) {
      for (let i = 0; i < count; i++) this.time[first + i] = times[rows[i]!]! + timeShift;
    }
    this.count = first + count;
  }

  #grow(count: number): void {
    const length = Math.max(count, this.cell.length * 2);
    this.cell = grown(this.cell, length);
    this.value = grown(this.value, length);
    if (this.time.length > 0) this.time = grown(this.time, length);
  }
}
