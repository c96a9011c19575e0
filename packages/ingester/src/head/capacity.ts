import type { Batch } from "@skald/model";
import { type HeadBlockCapacity, maxMetadataCells } from "@skald/storage";

/** Line bytes of the first block of a head, and of a block of a busy one. */
export const minBlockLineBytes = 4 * 1024;
export const maxBlockLineBytes = 1024 * 1024;
/** Rows of one block at most, also for lines that are short or empty; and per byte of line. */
const maxBlockRows = 65_536;
const minMeanLine = 32;
/** Room beyond the proportions of the batch, because the next one differs a little. */
const slack = 1.25;

/**
 * Capacity of a block for `lineBytes` of lines in the proportions of a batch: rows, runs and metadata per byte of
 * line. Always has room for the row at `rowFrom`.
 */
export function capacityFor(
  batch: Batch,
  rowFrom: number,
  wantedLineBytes: number,
): HeadBlockCapacity {
  const perRow = (total: number) => total / batch.rowCount;
  const meanLine = Math.max(minMeanLine, perRow(batch.lineBytes));
  const { valueBytes: batchValueBytes } = shapeOf(batch);
  const maxRows = rowsOfNames(batch.metaNames.length, perRow(batch.metaName.length));
  const lineBytes = Math.min(wantedLineBytes, Math.ceil(slack * maxRows * meanLine));
  const rows = Math.min(maxRows, Math.ceil((slack * lineBytes) / meanLine) + 16);
  const runs = Math.min(rows, Math.ceil(slack * rows * perRow(batch.streams.length)) + 16);
  const first = sizeOfRow(batch, rowFrom);
  const pairs = Math.ceil(slack * rows * perRow(batch.metaName.length));
  const valueBytes = Math.ceil(slack * rows * perRow(batchValueBytes));
  return {
    rows,
    runs,
    pairs: Math.max(pairs, first.pairs),
    lineBytes: Math.max(lineBytes, first.lineBytes),
    valueBytes: Math.max(valueBytes, first.valueBytes),
  };
}

/** Rows that a block can have with so many names of metadata, if each row brings new ones until all are there. */
function rowsOfNames(names: number, pairsPerRow: number): number {
  if (names === 0) return maxBlockRows;
  const rows = Math.max(maxMetadataCells / names, Math.sqrt(maxMetadataCells / pairsPerRow));
  return Math.min(maxBlockRows, Math.ceil(rows));
}

/** Bytes of the lines of a batch in one UTC day. */
export function lineBytesOfDay(batch: Batch, day: number): number {
  return shapeOf(batch).lineBytesOfDay.get(day) ?? 0;
}

/** What blocks are sized by; measured once for all heads that a batch goes to. */
interface BatchShape {
  readonly valueBytes: number;
  readonly lineBytesOfDay: ReadonlyMap<number, number>;
}

const shapes = new WeakMap<Batch, BatchShape>();

function shapeOf(batch: Batch): BatchShape {
  const known = shapes.get(batch);
  if (known !== undefined) return known;
  const lineBytesOfDay = new Map<number, number>();
  let day = Number.NaN;
  let bytes = 0;
  for (let row = 0; row < batch.rowCount; row++) {
    const dayOfRow = Math.floor(batch.seconds[row]! / 86_400);
    if (dayOfRow !== day) {
      if (bytes > 0) lineBytesOfDay.set(day, bytes);
      day = dayOfRow;
      bytes = lineBytesOfDay.get(day) ?? 0;
    }
    bytes += batch.lineLength[row]!;
  }
  lineBytesOfDay.set(day, bytes);
  const shape = { valueBytes: sum(batch.metaValueLength), lineBytesOfDay };
  shapes.set(batch, shape);
  return shape;
}

function sizeOfRow(batch: Batch, row: number) {
  const from = batch.metaStart[row]!;
  const to = batch.metaStart[row + 1]!;
  return {
    pairs: to - from,
    lineBytes: batch.lineLength[row]!,
    valueBytes: sum(batch.metaValueLength.subarray(from, to)),
  };
}

function sum(values: Uint32Array): number {
  let total = 0;
  for (let i = 0; i < values.length; i++) total += values[i]!;
  return total;
}
