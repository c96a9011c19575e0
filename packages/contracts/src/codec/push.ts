import {
  type Batch,
  type BatchSource,
  type BatchStream,
  type Labels,
  levelInMetadata,
  levelNames,
  type OtlpAttributeRule,
  type OtlpMapping,
  type OtlpReading,
  paddingBytes,
} from "@skald/model";
import type { Parts } from "@skald/transport/grpc";
import {
  bool,
  decodeMessage,
  double,
  encodeMessage,
  f64s,
  field,
  type MessageCodec,
  message,
  oneOf,
  optional,
  ProtoWriter,
  rawBytes,
  repeated,
  text,
  u8s,
  u32s,
  uint,
  wires,
} from "@skald/transport/protobuf";
import type { PushOutcome, PushRefusal, PushRequest } from "../ingester.js";
import { areBelow, ascends, textList, withPadding } from "./columns/columns.js";
import { labelSets } from "./columns/labels.js";

/** A batch as it is sent: its columns, of `bytes` only what rows refer to if that is much less, and the body as it came. */
interface WirePush {
  readonly tenant: string;
  readonly labels: readonly Labels[];
  readonly texts: readonly string[];
  readonly ordinals: Uint32Array;
  readonly rowStarts: Uint32Array;
  readonly rowEnds: Uint32Array;
  readonly seconds: Float64Array;
  readonly nanos: Uint32Array;
  readonly lineStart: Uint32Array;
  readonly lineLength: Uint32Array;
  readonly metaStart: Uint32Array;
  readonly metaName: Uint32Array;
  readonly metaValueStart: Uint32Array;
  readonly metaValueLength: Uint32Array;
  readonly metaNames: readonly string[];
  readonly levels: Uint8Array;
  readonly source?: Omit<BatchSource, "body">;
  readonly bytes: Uint8Array;
  readonly padding: Uint8Array;
  readonly body: Uint8Array;
}

const otlpRule: MessageCodec<OtlpAttributeRule> = message<OtlpAttributeRule>({
  action: field(1, oneOf(["index_label", "structured_metadata", "drop"])),
  attributes: repeated(2, text),
  regex: field(3, text),
});

const otlpMapping: MessageCodec<OtlpMapping> = message<OtlpMapping>({
  resource: repeated(1, otlpRule),
  scope: repeated(2, otlpRule),
  log: repeated(3, otlpRule),
  severityTextAsLabel: field(4, bool),
});

const otlpReading: MessageCodec<OtlpReading> = message<OtlpReading>({
  mapping: field(1, otlpMapping),
  receivedMs: optional(2, double),
});

export const source: MessageCodec<Omit<BatchSource, "body">> = message<Omit<BatchSource, "body">>({
  format: field(1, oneOf(["protobuf", "json", "legacy_json", "otlp_protobuf", "otlp_json"])),
  encoding: field(2, oneOf(["identity", "gzip", "deflate", "zstd", "lz4"])),
  dropped: field(3, u32s),
  otlp: optional(4, otlpReading),
});

const bytesField = 18;
const paddingField = 19;
const bodyField = 20;

const wirePush: MessageCodec<WirePush> = message<WirePush>(
  {
    tenant: field(1, text),
    labels: field(2, labelSets),
    texts: field(3, textList),
    ordinals: field(4, u32s),
    rowStarts: field(5, u32s),
    rowEnds: field(6, u32s),
    seconds: field(7, f64s),
    nanos: field(8, u32s),
    lineStart: field(9, u32s),
    lineLength: field(10, u32s),
    metaStart: field(11, u32s),
    metaName: field(12, u32s),
    metaValueStart: field(13, u32s),
    metaValueLength: field(14, u32s),
    metaNames: field(15, textList),
    levels: field(16, u8s),
    source: optional(17, source),
    bytes: field(bytesField, rawBytes),
    padding: field(paddingField, rawBytes),
    body: field(bodyField, rawBytes),
  },
  problemOf,
);

/** Of the bytes that a batch refers to, the share below which they are packed: copying all costs more than sending some more. */
const minUsedShare = 0.6;
/** Columns of a row take about this. */
const bytesPerRow = 32;
const restBytes = 4096;
const none = new Uint8Array(0);
const padding = new Uint8Array(paddingBytes);

/** A push as parts of a message; the bytes of lines and the body as it came are not copied where that can be helped. */
export function encodePush({ tenant, batch }: PushRequest): Parts {
  return encodeRows(tenant, batch, 0, batch.rowCount, batch.source);
}

/** A push as several messages of at most about so many bytes, but for rows that are larger; the body as it came is left out. */
export function* encodePushInParts(
  { tenant, batch }: PushRequest,
  maxBytes: number,
): Generator<Parts> {
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

/** Throws invalid_argument when the bytes are no push, or its columns do not fit together. */
export function decodePush(encoded: Uint8Array): PushRequest {
  const push = decodeMessage(wirePush, encoded);
  const { tenant, labels, texts, ordinals, rowStarts, rowEnds, source: origin, ...rest } = push;
  const { padding: _, body, bytes, seconds, lineLength, ...columns } = rest;
  const streams = labels.map(
    (own, i): BatchStream => ({
      labels: own,
      text: texts[i]!,
      ordinal: ordinals[i]!,
      rowStart: rowStarts[i]!,
      rowEnd: rowEnds[i]!,
    }),
  );
  const lineBytes = lineLength.reduce((total, length) => total + length, 0);
  const batch: Batch = {
    ...columns,
    rowCount: seconds.length,
    streams,
    seconds,
    lineLength,
    lineBytes,
    bytes: withPadding(bytes),
    ...(origin === undefined ? {} : { source: { ...origin, body } }),
  };
  return { tenant, batch };
}

function encodeRows(
  tenant: string,
  batch: Batch,
  from: number,
  to: number,
  origin: BatchSource | undefined,
): Parts {
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
  const head = encodeMessage<WirePush>(
    wirePush,
    {
      tenant,
      labels: streams.map(({ labels }) => labels),
      texts: streams.map(({ text: own }) => own),
      ordinals: Uint32Array.from(streams, ({ ordinal }) => ordinal),
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
      bytes: none,
      padding: none,
      body: none,
    },
    (to - from) * bytesPerRow + (pairTo - pairFrom) * 12 + restBytes,
  );
  return [
    head,
    prefixOf(bytesField, packed.bytes),
    packed.bytes,
    prefixOf(paddingField, padding),
    padding,
    ...(origin === undefined ? [] : [prefixOf(bodyField, origin.body), origin.body]),
  ];
}

/** What goes before bytes that are a field of their own. */
export function prefixOf(number: number, { length }: Uint8Array): Uint8Array {
  const writer = new ProtoWriter(0);
  writer.tag(number, wires.bytes);
  writer.varint(length);
  return writer.finish();
}

interface Ranges {
  readonly start: Uint32Array;
  readonly length: Uint32Array;
}

/** The bytes as they are when most of them are used, else the ranges one behind the other. */
function pack(bytes: Uint8Array, lines: Ranges, values: Ranges) {
  const used = sumOf(lines.length) + sumOf(values.length);
  if (used >= bytes.length * minUsedShare)
    return { bytes, lineStart: lines.start, valueStart: values.start };
  const packed = Buffer.allocUnsafe(used);
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let end = 0;
  const place = ({ start, length }: Ranges) => {
    const starts = new Uint32Array(start.length);
    for (let i = 0; i < start.length; i++) {
      starts[i] = end;
      end += all.copy(packed, end, start[i]!, start[i]! + length[i]!);
    }
    return starts;
  };
  const lineStart = place(lines);
  return { bytes: packed, lineStart, valueStart: place(values) };
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

/** What would make whoever works on the columns read outside of them. */
function problemOf(push: WirePush): string | undefined {
  const { labels, texts, ordinals, rowStarts, rowEnds, seconds, nanos, levels, bytes } = push;
  const { lineStart, lineLength, metaStart, metaName, metaValueStart, metaValueLength } = push;
  const { length: rows } = seconds;
  const { length: pairs } = metaName;
  if ([texts, ordinals, rowStarts, rowEnds].some(({ length }) => length !== labels.length))
    return "streams are not complete";
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
export function areLevels(levels: Uint8Array): boolean {
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

const refusal: MessageCodec<PushRefusal> = message<PushRefusal>({
  status: field(1, uint),
  reason: field(2, text),
  message: field(3, text),
  entries: field(4, uint),
  bytes: field(5, uint),
});

export const pushOutcome: MessageCodec<PushOutcome> = message<PushOutcome>({
  refusals: repeated(1, refusal),
});

/** What an ingester says of a push, and of itself: whether it takes pushes as bodies. */
export interface IngesterOutcome extends PushOutcome {
  readonly takesBodies: boolean;
}

export const ingesterOutcome: MessageCodec<IngesterOutcome> = message<IngesterOutcome>({
  refusals: repeated(1, refusal),
  takesBodies: field(2, bool),
});
