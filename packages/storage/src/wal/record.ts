import { copyBytes } from "@skald/kernels";
import {
  type Batch,
  type BatchSource,
  internal,
  type OtlpReading,
  type PushEncoding,
  type PushFormat,
  paddingBytes,
} from "@skald/model";
import { ByteReader, ByteWriter, bytesOf } from "../bytes.js";

/** What the write-ahead log holds, see docs/formats/wal.md. */
export type WalRecord = StreamsRecord | PushBodyRecord | PushColumnsRecord | ForwardRecord;

/** Names stream numbers of a tenant; stands before the first use of a number in each file. */
export interface StreamsRecord {
  readonly kind: "streams";
  readonly tenant: string;
  readonly numbers: readonly number[];
  /** Canonical label text of each number. */
  readonly texts: readonly string[];
}

/** The head that takes the rows of one UTC day of a push. */
export interface WalHead {
  /** Days since the epoch. */
  readonly day: number;
  readonly id: string;
}

/** A push as it was received, and what was decided about it. */
export interface PushBodyRecord {
  readonly kind: "push_body";
  readonly tenant: string;
  readonly heads: readonly WalHead[];
  /** Streams with rows left, ascending by their position in the push. */
  readonly ordinals: Uint32Array | readonly number[];
  /** Stream number of each ordinal. */
  readonly streams: Uint32Array | readonly number[];
  /** Level code of each row left. */
  readonly levels: Uint8Array;
  readonly source: BatchSource;
}

/** The rows of a push in columns, for pushes that were changed after decoding. */
export interface PushColumnsRecord {
  readonly kind: "push_columns";
  readonly tenant: string;
  readonly heads: readonly WalHead[];
  readonly ranges: readonly BatchRange[];
  /** Its `streams` are empty: the ranges name them by number. */
  readonly batch: Batch;
}

/**
 * All rows of one head so far, in columns: stands for whatever the log has of that head before it, so that a log behind
 * a head that grows slowly can be cut.
 */
export interface ForwardRecord extends Omit<PushColumnsRecord, "kind"> {
  readonly kind: "forward";
}

export const walRecordTypes = { streams: 1, push_body: 2, push_columns: 3, forward: 4 } as const;

/** Payload of a record, in parts: the body of a push is not copied. */
export function encodeWalRecord(record: WalRecord): Uint8Array[] {
  const writer = new ByteWriter(256);
  const body = writeWalRecord(writer, record);
  return body === undefined ? [writer.view()] : [writer.view(), body];
}

/** Writes the payload of a record and returns the body of a push, which the caller writes behind it. */
export function writeWalRecord(writer: ByteWriter, record: WalRecord): Uint8Array | undefined {
  writer.text(record.tenant);
  if (record.kind === "streams") {
    writer.u32(record.numbers.length);
    for (const [i, number] of record.numbers.entries()) {
      writer.u32(number);
      writer.text(record.texts[i]!);
    }
    return undefined;
  }
  writeHeads(writer, record.heads);
  if (record.kind !== "push_body") {
    writeBatchColumns(writer, record.batch, record.ranges);
    return undefined;
  }
  const { source } = record;
  writer.u8(formats.indexOf(source.format));
  writer.u8(encodings.indexOf(source.encoding));
  if (isOtlp(source.format)) writer.text(JSON.stringify(source.otlp));
  writer.u32s(record.ordinals);
  writer.u32s(record.streams);
  writer.u32s(source.dropped);
  writer.bytes(record.levels);
  writer.u32(source.body.byteLength);
  return source.body;
}

/** Decodes a payload whose checksum was right. Throws internal when it does not hold together. */
export function decodeWalRecord(type: number, payload: Uint8Array): WalRecord {
  const reader = new ByteReader(payload);
  const tenant = reader.text();
  if (type === walRecordTypes.streams) return { kind: "streams", tenant, ...readStreams(reader) };
  const heads = readHeads(reader);
  if (type === walRecordTypes.push_columns || type === walRecordTypes.forward) {
    const kind = type === walRecordTypes.forward ? "forward" : "push_columns";
    return { kind, tenant, heads, ...readBatchColumns(reader) };
  }
  if (type !== walRecordTypes.push_body) throw internal(`record has the unknown type ${type}`);
  const format = reader.oneOf(formats);
  const encoding = reader.oneOf(encodings);
  const otlp = isOtlp(format) ? (JSON.parse(reader.text()) as OtlpReading) : undefined;
  const ordinals = reader.u32s();
  const streams = reader.u32s();
  const dropped = reader.u32s();
  const levels = reader.bytes();
  const body = reader.bytes();
  const source = { format, encoding, body, dropped, ...(otlp === undefined ? {} : { otlp }) };
  return { kind: "push_body", tenant, heads, ordinals, streams, levels, source };
}

// The order is the code on disk: only ever append.
const formats: readonly PushFormat[] = [
  "protobuf",
  "json",
  "legacy_json",
  "otlp_protobuf",
  "otlp_json",
];
const encodings: readonly PushEncoding[] = ["identity", "gzip", "deflate", "zstd", "lz4"];

function isOtlp(format: PushFormat): boolean {
  return format === "otlp_protobuf" || format === "otlp_json";
}

function readStreams(reader: ByteReader): { numbers: number[]; texts: string[] } {
  const numbers: number[] = [];
  const texts: string[] = [];
  for (let left = reader.count(8); left > 0; left--) {
    numbers.push(reader.u32());
    texts.push(reader.text());
  }
  return { numbers, texts };
}

function writeHeads(writer: ByteWriter, heads: readonly WalHead[]): void {
  writer.u32(heads.length);
  for (const { day, id } of heads) {
    writer.u32(day);
    writer.text(id);
  }
}

function readHeads(reader: ByteReader): WalHead[] {
  return Array.from({ length: reader.count(8) }, () => ({
    day: reader.i32(),
    id: reader.text(),
  }));
}

/** The rows `rowFrom .. rowTo` of a batch, all of one stream of the tenant. */
export interface BatchRange {
  readonly stream: number;
  readonly rowFrom: number;
  readonly rowTo: number;
}

/** Writes the rows of the ranges in columns; lines and values are packed, so that unused bytes stay behind. */
function writeBatchColumns(writer: ByteWriter, batch: Batch, ranges: readonly BatchRange[]): void {
  writer.u32(ranges.length);
  for (const { stream, rowFrom, rowTo } of ranges) {
    writer.u32(stream);
    writer.u32(rowTo - rowFrom);
  }
  const { names, places } = namesOf(batch, ranges);
  writer.u32(names.length);
  for (const name of names) writer.text(name);
  for (const range of ranges) writeRange(writer, batch, range, places);
}

/** The names of metadata that some rows have, and the place of each name among them plus 1. All rows have all, in their own order. */
function namesOf(batch: Batch, ranges: readonly BatchRange[]): UsedNames {
  const { metaNames, metaName, metaStart } = batch;
  const pairsOf = ({ rowFrom, rowTo }: BatchRange) => metaStart[rowTo]! - metaStart[rowFrom]!;
  const pairs = ranges.reduce((sum, range) => sum + pairsOf(range), 0);
  if (pairs === metaName.length) return { names: metaNames, places: undefined };
  const names: string[] = [];
  const places = new Uint32Array(metaNames.length);
  for (const { rowFrom, rowTo } of ranges) {
    for (let pair = metaStart[rowFrom]!; pair < metaStart[rowTo]!; pair++) {
      const name = metaName[pair]!;
      if (places[name] === 0) places[name] = names.push(metaNames[name]!);
    }
  }
  return { names, places };
}

interface UsedNames {
  readonly names: readonly string[];
  readonly places: Uint32Array | undefined;
}

function writeRange(
  writer: ByteWriter,
  batch: Batch,
  { rowFrom, rowTo }: BatchRange,
  places: Uint32Array | undefined,
): void {
  const pairFrom = batch.metaStart[rowFrom]!;
  const pairTo = batch.metaStart[rowTo]!;
  writer.append(bytesOf(batch.seconds.subarray(rowFrom, rowTo)));
  writer.append(bytesOf(batch.nanos.subarray(rowFrom, rowTo)));
  writer.append(batch.levels.subarray(rowFrom, rowTo));
  writer.append(bytesOf(batch.lineLength.subarray(rowFrom, rowTo)));
  writer.append(
    bytesOf(batch.metaStart.subarray(rowFrom, rowTo + 1).map((pair) => pair - pairFrom)),
  );
  const metaName = batch.metaName.subarray(pairFrom, pairTo);
  writer.append(
    bytesOf(places === undefined ? metaName : metaName.map((name) => places[name]! - 1)),
  );
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
  const target = writer.take(sum(length, from, to));
  let at = 0;
  for (let i = from; i < to; ) {
    const first = start[i]!;
    let end = first + length[i]!;
    // Texts of neighbouring rows mostly are neighbours, and are copied together.
    for (i++; i < to && start[i] === end; i++) end += length[i]!;
    copyBytes(bytes, first, end, target, at);
    at += end - first;
  }
}

/** Reads the ranges back, rows numbered anew from 0. Throws internal when the bytes do not hold together. */
function readBatchColumns(reader: ByteReader): { ranges: BatchRange[]; batch: Batch } {
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
