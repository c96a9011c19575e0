import type { RawPush } from "@skald/kernels";
import { type Batch, type BatchStream, internal, paddingBytes } from "@skald/model";
import { assembleMetadata, type MetadataNames, resolveMetadataNames } from "./columns/metadata.js";
import type { PushBody } from "./decode.js";

/** A stream of a push that has rows left. */
export interface AcceptedStream {
  /** Position in the push. */
  readonly ordinal: number;
  readonly text: string;
}

/** The decisions about a decoded push; the write-ahead log keeps them beside its body. */
export interface BatchDecisions {
  /** Streams with at least one row left, ascending by ordinal. */
  readonly streams: readonly AcceptedStream[];
  /** Row ordinals that were refused, ascending. */
  readonly dropped: Uint32Array;
  /** Level code of each row that is left. */
  readonly levels: Uint8Array;
  /** The body as received; absent when rows of `raw` were changed after decoding. */
  readonly source?: PushBody;
  /** The result of `resolveMetadataNames(raw)`, when the caller has it. */
  readonly names?: MetadataNames;
}

/**
 * Assembles the accepted rows of a decoded push. A push that comes in and its replay from the log both call it, so both give
 * the same batch. Metadata names are sanitised and pairs are sorted by name. Empty pairs are dropped, so is a
 * `detected_level` that became a level code, and of a name given twice the last value stays. Columns of `raw` are
 * shared where nothing was dropped; invalid UTF-8 of metadata values is overwritten with spaces in its bytes. Throws
 * internal when the decisions do not fit the push.
 */
export function assembleBatch(raw: RawPush, decisions: BatchDecisions): Batch {
  return runSteps(assembleBatchSteps(raw, decisions));
}

/** Does the work of `assembleBatch` for threads that serve others: yields where other work may run first. */
export function* assembleBatchSteps(
  raw: RawPush,
  decisions: BatchDecisions,
): Generator<void, Batch> {
  const { dropped, levels, source } = decisions;
  const rowCount = raw.rowCount - dropped.length;
  if (levels.length !== rowCount) throw mismatch(`${levels.length} levels for ${rowCount} rows`);
  const streams = yield* placeStreams(raw, decisions.streams, dropped);
  const kept = keptRows(raw.rowCount, dropped);
  const names = decisions.names ?? (yield* resolveMetadataNames(raw));
  const metadata = yield* assembleMetadata(raw, names, kept, levels);
  const lineLength = pick(raw.lineLength, kept, rowCount);
  if (rowCount > rowsPerStep) yield;
  return {
    rowCount,
    streams,
    seconds: pickFloats(raw.seconds, kept, rowCount),
    nanos: pick(raw.nanos, kept, rowCount),
    bytes: raw.bytes,
    lineStart: pick(raw.lineStart, kept, rowCount),
    lineLength,
    ...metadata,
    levels,
    lineBytes: sum(lineLength),
    ...(source === undefined ? {} : { source: { ...source, dropped } }),
  };
}

/** A push of more rows yields before its columns are picked, and one of more streams after each that many. */
const rowsPerStep = 8192;
const streamsPerStep = 1024;

/** The row range of each accepted stream; every row that is left must belong to one of them. */
function* placeStreams(
  raw: RawPush,
  accepted: readonly AcceptedStream[],
  dropped: Uint32Array,
): Generator<void, BatchStream[]> {
  const streams: BatchStream[] = [];
  let rowStart = 0;
  let cut = 0;
  let last = -1;
  for (const { ordinal, text } of accepted) {
    if (ordinal <= last || ordinal >= raw.streamCount) throw mismatch(`stream ${ordinal}`);
    last = ordinal;
    const from = raw.streamRowStart[ordinal]!;
    const to = raw.streamRowStart[ordinal + 1]!;
    while (cut < dropped.length && dropped[cut]! < from) cut++;
    const before = cut;
    while (cut < dropped.length && dropped[cut]! < to) cut++;
    const rowEnd = rowStart + (to - from) - (cut - before);
    streams.push({ text, ordinal, rowStart, rowEnd });
    rowStart = rowEnd;
    if (streams.length % streamsPerStep === 0) yield;
  }
  if (rowStart !== raw.rowCount - dropped.length) throw mismatch(`${rowStart} rows in streams`);
  return streams;
}

/** Ordinals of the rows that are left; undefined when all are. */
function keptRows(rowCount: number, dropped: Uint32Array): Uint32Array | undefined {
  if (dropped.length === 0) return undefined;
  const kept = new Uint32Array(rowCount - dropped.length);
  let count = 0;
  let cut = 0;
  for (let row = 0; row < rowCount; row++) {
    if (cut < dropped.length && dropped[cut] === row) cut++;
    else kept[count++] = row;
  }
  if (cut !== dropped.length) throw mismatch("dropped rows are not ascending row ordinals");
  return kept;
}

function pick(column: Uint32Array, kept: Uint32Array | undefined, rowCount: number): Uint32Array {
  if (kept === undefined) return column.length === rowCount ? column : column.subarray(0, rowCount);
  const picked = new Uint32Array(rowCount);
  for (let row = 0; row < rowCount; row++) picked[row] = column[kept[row]!]!;
  return picked;
}

function pickFloats(
  column: Float64Array,
  kept: Uint32Array | undefined,
  rowCount: number,
): Float64Array {
  if (kept === undefined) return column.length === rowCount ? column : column.subarray(0, rowCount);
  const picked = new Float64Array(rowCount);
  for (let row = 0; row < rowCount; row++) picked[row] = column[kept[row]!]!;
  return picked;
}

/** A column of one byte per row without the dropped rows, which ascend. */
export function withoutRows(column: Uint8Array, dropped: ArrayLike<number>): Uint8Array {
  if (dropped.length === 0) return column;
  const left = new Uint8Array(column.length - dropped.length);
  let cut = 0;
  for (let row = 0; row < column.length; row++) {
    if (dropped[cut] === row) cut++;
    else left[row - cut] = column[row]!;
  }
  return left;
}

function sum(column: Uint32Array): number {
  let total = 0;
  for (let i = 0; i < column.length; i++) total += column[i]!;
  return total;
}

function mismatch(what: string): Error {
  return internal(`decisions do not fit the push they were made for: ${what}`);
}

/**
 * Turns a batch into a decoded push of label texts, so that rows that never were a body are checked in the same way as those
 * that were. Label texts and metadata names follow a copy of its bytes; columns that validation may change are
 * copied too. The streams of the batch must hold all its rows in order, without gaps.
 */
export function rawOfBatch(batch: Batch): RawPush {
  const { streams, rowCount, metaNames, metaName } = batch;
  const texts = [...streams.map(({ text }) => text), ...metaNames].map((text) => utf8.encode(text));
  const starts = new Uint32Array(texts.length);
  const lengths = Uint32Array.from(texts, (text) => text.length);
  let end = batch.bytes.length;
  for (const [i, text] of texts.entries()) {
    starts[i] = end;
    end += text.length;
  }
  const bytes = new Uint8Array(end + paddingBytes);
  bytes.set(batch.bytes);
  for (const [i, text] of texts.entries()) bytes.set(text, starts[i]);
  const nameStarts = starts.subarray(streams.length);
  const nameLengths = lengths.subarray(streams.length);
  return {
    bytes: bytes.subarray(0, end),
    streamCount: streams.length,
    rowCount,
    pairCount: metaName.length,
    streamLabelStart: starts.subarray(0, streams.length),
    streamLabelLength: lengths.subarray(0, streams.length),
    streamRowStart: Uint32Array.from([...streams.map(({ rowStart }) => rowStart), rowCount]),
    seconds: batch.seconds.slice(),
    nanos: batch.nanos.slice(),
    lineStart: batch.lineStart,
    lineLength: batch.lineLength.slice(),
    metaStart: batch.metaStart,
    metaNameStart: metaName.map((name) => nameStarts[name]!),
    metaNameLength: metaName.map((name) => nameLengths[name]!),
    metaValueStart: batch.metaValueStart,
    metaValueLength: batch.metaValueLength,
  };
}

const utf8 = new TextEncoder();

/** Runs interruptible work to its end in one go. */
function runSteps<T>(work: Generator<void, T>): T {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}
