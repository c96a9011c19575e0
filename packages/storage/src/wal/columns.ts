import { type Batch, paddingBytes } from "@skald/model";
import { type ByteReader, type ByteWriter, bytesOf } from "../bytes.js";

/** The rows `rowFrom .. rowTo` of a batch, all of one stream of the tenant. */
export interface BatchRange {
  readonly stream: number;
  readonly rowFrom: number;
  readonly rowTo: number;
}

/** Writes the rows of the ranges in columns; lines and values are packed, so that unused bytes stay behind. */
export function writeBatchColumns(
  writer: ByteWriter,
  batch: Batch,
  ranges: readonly BatchRange[],
): void {
  writer.u32(ranges.length);
  for (const { stream, rowFrom, rowTo } of ranges) {
    writer.u32(stream);
    writer.u32(rowTo - rowFrom);
  }
  writer.u32(batch.metaNames.length);
  for (const name of batch.metaNames) writer.text(name);
  for (const range of ranges) writeRange(writer, batch, range);
}

function writeRange(writer: ByteWriter, batch: Batch, { rowFrom, rowTo }: BatchRange): void {
  const pairFrom = batch.metaStart[rowFrom]!;
  const pairTo = batch.metaStart[rowTo]!;
  writer.append(bytesOf(batch.seconds.subarray(rowFrom, rowTo)));
  writer.append(bytesOf(batch.nanos.subarray(rowFrom, rowTo)));
  writer.append(batch.levels.subarray(rowFrom, rowTo));
  writer.append(bytesOf(batch.lineLength.subarray(rowFrom, rowTo)));
  writer.append(
    bytesOf(batch.metaStart.subarray(rowFrom, rowTo + 1).map((pair) => pair - pairFrom)),
  );
  writer.append(bytesOf(batch.metaName.subarray(pairFrom, pairTo)));
  writer.append(bytesOf(batch.metaValueLength.subarray(pairFrom, pairTo)));
  packBytes(writer, batch.bytes, batch.lineStart, batch.lineLength, rowFrom, rowTo);
  packBytes(writer, batch.bytes, batch.metaValueStart, batch.metaValueLength, pairFrom, pairTo);
}

function packBytes(
  writer: ByteWriter,
  bytes: Uint8Array,
  start: Uint32Array,
  length: Uint32Array,
  from: number,
  to: number,
): void {
  const source = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const target = writer.take(sum(length, from, to));
  let at = 0;
  for (let i = from; i < to; i++) {
    source.copy(target, at, start[i]!, start[i]! + length[i]!);
    at += length[i]!;
  }
}

/** Reads the ranges back, rows numbered anew from 0. Throws internal when the bytes do not hold together. */
export function readBatchColumns(reader: ByteReader): { ranges: BatchRange[]; batch: Batch } {
  let rowCount = 0;
  const ranges: BatchRange[] = Array.from({ length: reader.count(8) }, () => {
    const stream = reader.u32();
    const rowFrom = rowCount;
    rowCount += reader.count(21);
    return { stream, rowFrom, rowTo: rowCount };
  });
  const metaNames = Array.from({ length: reader.count(4) }, () => reader.text());
  const parts = ranges.map((range) => readRange(reader, range.rowTo - range.rowFrom));
  return { ranges, batch: joinParts(parts, rowCount, metaNames) };
}

interface RangeColumns {
  readonly seconds: Float64Array;
  readonly nanos: Uint32Array;
  readonly levels: Uint8Array;
  readonly lineLength: Uint32Array;
  readonly metaStart: Uint32Array;
  readonly metaName: Uint32Array;
  readonly metaValueLength: Uint32Array;
  readonly lines: Uint8Array;
  readonly values: Uint8Array;
}

function readRange(reader: ByteReader, rows: number): RangeColumns {
  const seconds = reader.f64Array(rows);
  const nanos = reader.u32Array(rows);
  const levels = reader.raw(rows);
  const lineLength = reader.u32Array(rows);
  const metaStart = reader.u32Array(rows + 1);
  const pairs = metaStart[rows]!;
  const metaName = reader.u32Array(pairs);
  const metaValueLength = reader.u32Array(pairs);
  const lines = reader.raw(sum(lineLength, 0, rows));
  const values = reader.raw(sum(metaValueLength, 0, pairs));
  return {
    seconds,
    nanos,
    levels,
    lineLength,
    metaStart,
    metaName,
    metaValueLength,
    lines,
    values,
  };
}

function joinParts(
  parts: readonly RangeColumns[],
  rowCount: number,
  metaNames: readonly string[],
): Batch {
  const pairCount = parts.reduce((total, part) => total + part.metaName.length, 0);
  const lineBytes = parts.reduce((total, part) => total + part.lines.length, 0);
  const valueBytes = parts.reduce((total, part) => total + part.values.length, 0);
  const batch = {
    rowCount,
    streams: [],
    seconds: new Float64Array(rowCount),
    nanos: new Uint32Array(rowCount),
    bytes: new Uint8Array(lineBytes + valueBytes + paddingBytes),
    lineStart: new Uint32Array(rowCount),
    lineLength: new Uint32Array(rowCount),
    metaStart: new Uint32Array(rowCount + 1),
    metaName: new Uint32Array(pairCount),
    metaValueStart: new Uint32Array(pairCount),
    metaValueLength: new Uint32Array(pairCount),
    metaNames,
    levels: new Uint8Array(rowCount),
    lineBytes,
  };
  let row = 0;
  let pair = 0;
  let at = 0;
  for (const part of parts) {
    batch.seconds.set(part.seconds, row);
    batch.nanos.set(part.nanos, row);
    batch.levels.set(part.levels, row);
    batch.lineLength.set(part.lineLength, row);
    batch.metaName.set(part.metaName, pair);
    batch.metaValueLength.set(part.metaValueLength, pair);
    batch.bytes.set(part.lines, at);
    at = place(batch.lineStart, part.lineLength, row, at);
    batch.bytes.set(part.values, at);
    at = place(batch.metaValueStart, part.metaValueLength, pair, at);
    for (let i = 0; i <= part.nanos.length; i++)
      batch.metaStart[row + i] = pair + part.metaStart[i]!;
    row += part.nanos.length;
    pair += part.metaName.length;
  }
  return batch;
}

/** Puts values of the lengths one behind the other from byte `at`; returns where they end. */
function place(starts: Uint32Array, lengths: Uint32Array, first: number, at: number): number {
  let end = at;
  for (let i = 0; i < lengths.length; i++) {
    starts[first + i] = end;
    end += lengths[i]!;
  }
  return end;
}

function sum(values: Uint32Array, from: number, to: number): number {
  let total = 0;
  for (let i = from; i < to; i++) total += values[i]!;
  return total;
}
