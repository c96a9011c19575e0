import type { RawPush } from "@skald/kernels";
import { type Batch, type BatchStream, internal, type Labels } from "@skald/model";
import type { PushBody } from "./decode.js";
import { assembleMetadata } from "./metadata/assemble-metadata.js";
import { type MetadataNames, resolveMetadataNames } from "./metadata/metadata-names.js";
import { runSteps } from "./steps.js";

/** A stream of a push that has rows left. */
export interface AcceptedStream {
  /** Position in the push. */
  readonly ordinal: number;
  readonly labels: Labels;
  readonly text: string;
}

/** What the distributor decided about a decoded push, and what the write-ahead log keeps beside its body. */
export interface BatchDecisions {
  /** Streams with at least one row left, ascending by ordinal. */
  readonly streams: readonly AcceptedStream[];
  /** Row ordinals that were refused, ascending. */
  readonly dropped: Uint32Array;
  /** Level code of each row that is left. */
  readonly levels: Uint8Array;
  /** The body as received; to be left out when rows of `raw` were changed after decoding. */
  readonly source?: PushBody;
  /** What `resolveMetadataNames(raw)` gave, when the caller has it. */
  readonly names?: MetadataNames;
}

/**
 * Puts the accepted rows of a decoded push together: the same for the push that comes in and for its replay from the log,
 * so both give the same batch. Metadata names are sanitised, pairs sorted by name and dropped where empty, of a name given twice
 * the last value wins, and a `detected_level` that became a level code goes. Columns of `raw` are shared
 * where nothing was dropped; invalid UTF-8 of metadata values is overwritten with spaces in its bytes.
 * Throws internal when the decisions do not fit the push.
 */
export function assembleBatch(raw: RawPush, decisions: BatchDecisions): Batch {
  return runSteps(assembleBatchSteps(raw, decisions));
}

/** `assembleBatch` for threads that serve others: yields where other work may go first. */
export function* assembleBatchSteps(
  raw: RawPush,
  decisions: BatchDecisions,
): Generator<void, Batch> {
  const { dropped, levels, source } = decisions;
  const rowCount = raw.rowCount - dropped.length;
  if (levels.length !== rowCount) throw mismatch(`${levels.length} levels for ${rowCount} rows`);
  const streams = placeStreams(raw, decisions.streams, dropped);
  const keep = keptRows(raw.rowCount, dropped);
  const names = decisions.names ?? (yield* resolveMetadataNames(raw));
  const metadata = yield* assembleMetadata(raw, names, keep, levels);
  const lineLength = pick(raw.lineLength, keep, raw.rowCount);
  if (rowCount > rowsPerStep) yield;
  return {
    rowCount,
    streams,
    seconds: pickFloats(raw.seconds, keep, raw.rowCount),
    nanos: pick(raw.nanos, keep, raw.rowCount),
    bytes: raw.bytes,
    lineStart: pick(raw.lineStart, keep, raw.rowCount),
    lineLength,
    ...metadata,
    levels,
    lineBytes: sum(lineLength),
    ...(source === undefined ? {} : { source: { ...source, dropped } }),
  };
}

/** A push of more rows lets others go first before it is put together. */
const rowsPerStep = 8192;

/** The row range of each accepted stream; every row that is left must belong to one of them. */
function placeStreams(
  raw: RawPush,
  accepted: readonly AcceptedStream[],
  dropped: Uint32Array,
): BatchStream[] {
  const streams: BatchStream[] = [];
  let rowStart = 0;
  let cut = 0;
  let last = -1;
  for (const { ordinal, labels, text } of accepted) {
    if (ordinal <= last || ordinal >= raw.streamCount) throw mismatch(`stream ${ordinal}`);
    last = ordinal;
    const from = raw.streamRowStart[ordinal]!;
    const to = raw.streamRowStart[ordinal + 1]!;
    while (cut < dropped.length && dropped[cut]! < from) cut++;
    const before = cut;
    while (cut < dropped.length && dropped[cut]! < to) cut++;
    const rowEnd = rowStart + (to - from) - (cut - before);
    streams.push({ labels, text, ordinal, rowStart, rowEnd });
    rowStart = rowEnd;
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
  const picked = new Uint32Array(kept.length);
  for (let row = 0; row < kept.length; row++) picked[row] = column[kept[row]!]!;
  return picked;
}

function pickFloats(
  column: Float64Array,
  kept: Uint32Array | undefined,
  rowCount: number,
): Float64Array {
  if (kept === undefined) return column.length === rowCount ? column : column.subarray(0, rowCount);
  const picked = new Float64Array(kept.length);
  for (let row = 0; row < kept.length; row++) picked[row] = column[kept[row]!]!;
  return picked;
}

function sum(column: Uint32Array): number {
  let total = 0;
  for (let i = 0; i < column.length; i++) total += column[i]!;
  return total;
}

function mismatch(what: string): Error {
  return internal(`decisions do not fit the push they were made for: ${what}`);
}
