import type { TakeBytes } from "@skald/kernels";
import {
  type Batch,
  type BatchSource,
  type BatchStream,
  errorCodeOf,
  levelInMetadata,
  levelNames,
  paddingBytes,
} from "@skald/model";
import { assembleBatch, decodeBody } from "@skald/push";
import { damaged, ProtoWriter, wires } from "@skald/transport/protobuf";
import type { PushPart, PushRequest } from "../ingester.js";
import { decodeRaw, encodeRaw } from "./codec.js";
import { areBelow, ascends, withPadding } from "./columns.js";
import { messages } from "./schema.js";
import { cutStreams } from "./stretches.js";
import type { Raw } from "./types.js";

/** Decoding a larger body would hold up who gets it: this takes some 6 ms. */
const maxDecodedBytes = 4 * 1024 * 1024;

/**
 * A part of a push as the body that a client sent, or as stretches of it: the body is a third of the columns, and decoding
 * costs less than making columns of a part. Undefined where there is no such body. The message is in memory from `take`.
 */
export function encodePushBody(
  { tenant, whole, streams }: PushPart,
  take?: TakeBytes,
): Uint8Array | undefined {
  const { source } = whole;
  if (source?.format !== "protobuf" || source.encoding !== "identity") return undefined;
  if (whole.bytes.length > maxDecodedBytes) return undefined;
  if (streams === undefined) {
    const levels = whole.levels.subarray(0, whole.rowCount);
    const head = { ...noColumns, tenant, ...streamColumns(whole.streams), levels, source };
    return encodeWithBytes(head, { body: [source.body] }, take);
  }
  const cut = cutStreams(whole, streams);
  if (cut === undefined) return undefined;
  const { pieces, ordinals, dropped } = cut;
  const own = Array.from(streams, (index) => whole.streams[index]!);
  const head = {
    ...noColumns,
    ...{ tenant, ...streamColumns(own), ordinals, levels: levelsOf(whole, own) },
    source: { ...source, dropped },
  };
  return encodeWithBytes(head, { body: pieces }, take);
}

function levelsOf(batch: Batch, streams: readonly BatchStream[]): Uint8Array {
  const rows = streams.reduce((sum, { rowStart, rowEnd }) => sum + rowEnd - rowStart, 0);
  const levels = new Uint8Array(rows);
  let at = 0;
  for (const { rowStart, rowEnd } of streams) {
    levels.set(batch.levels.subarray(rowStart, rowEnd), at);
    at += rowEnd - rowStart;
  }
  return levels;
}

type LargeField = "bytes" | "padding" | "body";

/** Encodes a push whose large fields are in pieces: they are copied once, into memory from `take`. */
function encodeWithBytes(
  message: Omit<Raw<"PushRequest">, LargeField>,
  fields: { readonly [K in LargeField]?: readonly Uint8Array[] },
  take: TakeBytes = Buffer.allocUnsafe,
): Uint8Array {
  const { texts, levels, metaName } = message;
  const rowBytes = levels.length * bytesPerRow + metaName.length * bytesPerPair;
  const sizeBytes = rowBytes + texts.length * bytesPerStream + restBytes;
  const pieces: Uint8Array[] = [
    encodeRaw("PushRequest", { ...message, bytes: none, padding: none, body: none }, sizeBytes),
  ];
  for (const [name, own] of Object.entries(fields)) {
    const writer = new ProtoWriter();
    writer.tag(messages.PushRequest[name as LargeField][0], wires.bytes);
    writer.varint(lengthOf(own));
    pieces.push(writer.finish(), ...own);
  }
  const encoded = take(lengthOf(pieces));
  let at = 0;
  for (const piece of pieces) {
    encoded.set(piece, at);
    at += piece.length;
  }
  return encoded;
}

function lengthOf(pieces: readonly Uint8Array[]): number {
  return pieces.reduce((sum, { length }) => sum + length, 0);
}

/** A push in columns, with the body that it came as, in memory from `take`. */
export function encodePush({ tenant, batch }: PushRequest, take?: TakeBytes): Uint8Array {
  return encodeRows(tenant, batch, 0, batch.rowCount, batch.source, take);
}

/** Splits a push in columns into messages of about `maxBytes` at most, without its body. A larger row is a message of its own. */
export function* encodePushInParts(
  { tenant, batch }: PushRequest,
  maxBytes: number,
): Generator<Uint8Array> {
  let from = 0;
  let size = 0;
  for (let row = 0; row < batch.rowCount; row++) {
    const rowBytes = bytesOfRow(batch, row) + bytesPerRow;
    if (row > from && size + rowBytes > maxBytes) {
      yield encodeRows(tenant, batch, from, row, undefined);
      from = row;
      size = 0;
    }
    size += rowBytes;
  }
  yield encodeRows(tenant, batch, from, batch.rowCount, undefined);
}

/**
 * Throws invalid_argument when the bytes are no push, its columns do not fit together, or it does not fit its body. A body
 * is decoded into memory from `take`; columns are views of the message.
 */
export function decodePush(encoded: Uint8Array, take?: TakeBytes): PushRequest {
  const push = decodeRaw("PushRequest", encoded);
  const { tenant } = push;
  return { tenant, batch: push.metaStart.length === 0 ? fromBody(push, take) : fromColumns(push) };
}

function fromColumns(push: Raw<"PushRequest">): Batch {
  const problem = problemOf(push);
  if (problem !== undefined) throw damaged(problem);
  const { texts, ordinals, rowStarts, rowEnds, source, body, lineLength } = push;
  const streams = texts.map(
    (text, i): BatchStream => ({
      text,
      ordinal: ordinals[i]!,
      rowStart: rowStarts[i]!,
      rowEnd: rowEnds[i]!,
    }),
  );
  let lineBytes = 0;
  for (let i = 0; i < lineLength.length; i++) lineBytes += lineLength[i]!;
  return {
    rowCount: push.seconds.length,
    streams,
    seconds: push.seconds,
    nanos: push.nanos,
    lineStart: push.lineStart,
    lineLength,
    lineBytes,
    metaStart: push.metaStart,
    metaName: push.metaName,
    metaValueStart: push.metaValueStart,
    metaValueLength: push.metaValueLength,
    metaNames: push.metaNames,
    levels: push.levels,
    bytes: withPadding(push.bytes),
    ...(source === undefined ? {} : { source: { ...source, body } }),
  };
}

function fromBody(push: Raw<"PushRequest">, take: TakeBytes | undefined): Batch {
  const { texts, ordinals, levels, source: origin, body } = push;
  if (origin === undefined) throw damaged("it has no rows");
  if (ordinals.length !== texts.length) throw damaged(notComplete);
  if (!areLevels(levels)) throw damaged("a level is unknown");
  const streams = texts.map((text, i) => ({ text, ordinal: ordinals[i]! }));
  const source = { ...origin, body };
  try {
    const raw = decodeBody(source, undefined, take);
    return assembleBatch(raw, { streams, dropped: origin.dropped, levels, source });
  } catch (error) {
    const code = errorCodeOf(error);
    if (code !== "internal" && code !== "too_large") throw error;
    throw damaged((error as Error).message);
  }
}

/** Below this share of used bytes a batch is packed: copying all of them costs more than sending some more. */
const minUsedShare = 0.6;
/** Bytes that the columns of a row, a stream, and the rest of a push take, about. */
const bytesPerRow = 32;
const bytesPerPair = 12;
const bytesPerStream = 128;
const restBytes = 4096;
const none = new Uint8Array(0);
const noNumbers = new Uint32Array(0);
const padding = new Uint8Array(paddingBytes);

const noColumns = {
  rowStarts: noNumbers,
  rowEnds: noNumbers,
  seconds: new Float64Array(0),
  nanos: noNumbers,
  lineStart: noNumbers,
  lineLength: noNumbers,
  metaStart: noNumbers,
  metaName: noNumbers,
  metaValueStart: noNumbers,
  metaValueLength: noNumbers,
  metaNames: [],
};

function streamColumns(streams: readonly BatchStream[]) {
  return {
    texts: streams.map(({ text }) => text),
    ordinals: Uint32Array.from(streams, ({ ordinal }) => ordinal),
  };
}

/** Rows `[from, to)`. `origin` is the body that they came as. */
function encodeRows(
  tenant: string,
  batch: Batch,
  from: number,
  to: number,
  origin: BatchSource | undefined,
  take?: TakeBytes,
): Uint8Array {
  const isWhole = from === 0 && to === batch.rowCount;
  const streams = isWhole
    ? batch.streams
    : batch.streams.filter(({ rowStart, rowEnd }) => rowStart < to && rowEnd > from);
  const clip = (row: number) => Math.min(Math.max(row, from), to) - from;
  const pairFrom = batch.metaStart[from]!;
  const pairTo = batch.metaStart[to]!;
  const lines = {
    start: batch.lineStart.subarray(from, to),
    length: batch.lineLength.subarray(from, to),
  };
  const values = {
    start: batch.metaValueStart.subarray(pairFrom, pairTo),
    length: batch.metaValueLength.subarray(pairFrom, pairTo),
  };
  const packed = pack(batch.bytes, lines, values);
  const metaStart = batch.metaStart.subarray(from, to + 1);
  return encodeWithBytes(
    {
      tenant,
      ...streamColumns(streams),
      rowStarts: Uint32Array.from(streams, ({ rowStart }) => clip(rowStart)),
      rowEnds: Uint32Array.from(streams, ({ rowEnd }) => clip(rowEnd)),
      seconds: batch.seconds.subarray(from, to),
      nanos: batch.nanos.subarray(from, to),
      lineStart: packed.lineStart,
      lineLength: lines.length,
      metaStart: pairFrom === 0 ? metaStart : metaStart.map((pair) => pair - pairFrom),
      metaName: batch.metaName.subarray(pairFrom, pairTo),
      metaValueStart: packed.valueStart,
      metaValueLength: values.length,
      metaNames: batch.metaNames,
      levels: batch.levels.subarray(from, to),
      ...(origin === undefined ? {} : { source: origin }),
    },
    { bytes: packed.pieces, padding: [padding], body: origin === undefined ? [] : [origin.body] },
    take,
  );
}

interface Ranges {
  readonly start: Uint32Array;
  readonly length: Uint32Array;
}

/** The bytes as they are when most of them are used, else the ranges one behind the other. */
function pack(bytes: Uint8Array, lines: Ranges, values: Ranges) {
  const used = sumOf(lines.length) + sumOf(values.length);
  if (used >= bytes.length * minUsedShare)
    return { pieces: [bytes], lineStart: lines.start, valueStart: values.start };
  const pieces: Uint8Array[] = [];
  let end = 0;
  const place = ({ start, length }: Ranges) => {
    const starts = new Uint32Array(start.length);
    let from = 0;
    let to = 0;
    for (let i = 0; i < start.length; i++) {
      // Texts of neighbouring rows mostly are neighbours, and one piece.
      if (start[i] !== to) {
        if (to > from) pieces.push(bytes.subarray(from, to));
        end += to - from;
        from = start[i]!;
      }
      starts[i] = end + start[i]! - from;
      to = start[i]! + length[i]!;
    }
    if (to > from) pieces.push(bytes.subarray(from, to));
    end += to - from;
    return starts;
  };
  const lineStart = place(lines);
  return { pieces, lineStart, valueStart: place(values) };
}

function sumOf(numbers: Uint32Array): number {
  let total = 0;
  for (let i = 0; i < numbers.length; i++) total += numbers[i]!;
  return total;
}

function bytesOfRow({ lineLength, metaStart, metaValueLength }: Batch, row: number): number {
  let total = lineLength[row]!;
  for (let pair = metaStart[row]!; pair < metaStart[row + 1]!; pair++)
    total += metaValueLength[pair]!;
  return total;
}

const nsPerSecond = 1_000_000_000;
const notComplete = "streams are not complete";

/** What would make code behind the message read outside of the columns. */
function problemOf(push: Raw<"PushRequest">): string | undefined {
  const { texts, ordinals, rowStarts, rowEnds, seconds, nanos, levels, bytes } = push;
  const { lineStart, lineLength, metaStart, metaName, metaValueStart, metaValueLength } = push;
  const { length: rows } = seconds;
  const { length: pairs } = metaName;
  if ([ordinals, rowStarts, rowEnds].some(({ length }) => length !== texts.length))
    return notComplete;
  if ([nanos, levels, lineStart, lineLength].some(({ length }) => length !== rows))
    return "columns are not of one length";
  if (metaValueStart.length !== pairs || metaValueLength.length !== pairs)
    return "metadata are not complete";
  if (metaStart.length !== rows + 1 || metaStart[0] !== 0 || metaStart[rows] !== pairs)
    return "metadata are of no row";
  if (!ascends(metaStart)) return "metadata do not ascend";
  if (!areBelow(metaName, push.metaNames.length)) return "metadata have no name";
  if (!areBelow(nanos, nsPerSecond) || !seconds.every(Number.isSafeInteger))
    return "a time makes no sense";
  if (!areLevels(levels)) return "a level is unknown";
  if (!areWithin(lineStart, lineLength, bytes.length)) return "a line is not in the bytes";
  if (!areWithin(metaValueStart, metaValueLength, bytes.length))
    return "a value is not in the bytes";
  if (push.source !== undefined && !ascends(push.source.dropped, true)) return "rows do not ascend";
  return problemOfStreams(rowStarts, rowEnds, rows);
}

/** Whether each is the code of a level. */
function areLevels(levels: Uint8Array): boolean {
  for (let i = 0; i < levels.length; i++) {
    if (levels[i]! >= levelNames.length && levels[i] !== levelInMetadata) return false;
  }
  return true;
}

function problemOfStreams(
  starts: Uint32Array,
  ends: Uint32Array,
  rows: number,
): string | undefined {
  let at = 0;
  for (let i = 0; i < starts.length; i++) {
    if (starts[i] !== at || ends[i]! < at) return "streams are not one behind the other";
    at = ends[i]!;
  }
  return at === rows ? undefined : "a row is of no stream";
}

function areWithin(starts: Uint32Array, lengths: Uint32Array, size: number): boolean {
  for (let i = 0; i < starts.length; i++) if (starts[i]! + lengths[i]! > size) return false;
  return true;
}
