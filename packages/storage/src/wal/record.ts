import {
  type Batch,
  type BatchSource,
  internal,
  type OtlpReading,
  type PushEncoding,
  type PushFormat,
} from "@skald/model";
import { ByteReader, ByteWriter } from "../bytes.js";
import { type BatchRange, readBatchColumns, writeBatchColumns } from "./columns.js";

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

/** Writes the payload of a record, but for the body of a push, which comes behind it and is returned. */
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
