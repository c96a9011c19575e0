import { grown } from "@skald/kernels";
import { tooManyCells } from "../../plan/limits.js";
import type { LeafMode } from "../../plan/plan.js";
import type { CellTable } from "./cells.js";

/** Rows to be added: what a pipeline left of a block, with the bucket of each row. */
export interface AddedRows {
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

export type Accumulate = (cells: CellTable, added: AddedRows) => void;

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
    cells.rows[cell]! += 1;
    cells.value[cell]! += lineOffsets[line + 1]! - lineOffsets[line]!;
  });
}

function addSums(cells: CellTable, added: AddedRows): void {
  const { values } = added;
  forEachCell(cells, added, (cell, i) => {
    cells.rows[cell]! += 1;
    cells.value[cell]! += values[i]!;
  });
}

/** Keeps the least value, or with sign -1 the greatest. A NaN gives way to any number. */
function addExtremes(cells: CellTable, added: AddedRows, sign: 1 | -1): void {
  const { values } = added;
  forEachCell(cells, added, (cell, i) => {
    const kept = cells.value[cell]!;
    const value = values[i]!;
    const isFirst = cells.rows[cell] === 0;
    cells.rows[cell]! += 1;
    if (isFirst || Number.isNaN(kept) || sign * value < sign * kept) cells.value[cell] = value;
  });
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

/** The rows of mode `samples` in order of arrival: cell, value and time. Cells count their rows. */
export class SampleColumns {
  count = 0;
  cell = new Uint32Array(initialSamples);
  value = new Float64Array(initialSamples);
  /** ns since the end of the leaf */
  time = new Float64Array(initialSamples);
  readonly #maxSamples: number;

  constructor(maxSamples: number) {
    this.#maxSamples = maxSamples;
  }

  add(cells: CellTable, added: AddedRows): void {
    const { rows, values, times, timeShift } = added;
    forEachCell(cells, added, (cell, i) => {
      cells.rows[cell]! += 1;
      this.push(cell, values[i]!, times[rows[i]!]! + timeShift);
    });
  }

  push(cell: number, value: number, time: number): void {
    const { count } = this;
    if (count >= this.#maxSamples) throw tooManyCells(this.#maxSamples);
    if (count === this.cell.length) this.#grow();
    this.cell[count] = cell;
    this.value[count] = value;
    this.time[count] = time;
    this.count = count + 1;
  }

  #grow(): void {
    const length = this.count * 2;
    this.cell = grown(this.cell, length);
    this.value = grown(this.value, length);
    this.time = grown(this.time, length);
  }
}
