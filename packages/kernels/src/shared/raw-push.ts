import { bodyTooLarge, corrupt, type KernelError, tooLarge } from "./bytes.js";

/**
 * A push body as the scan kernels find it: columns of ranges into `bytes`, checked for syntax only. The compiled kernels
 * pack the texts: lines of neighbouring rows are neighbours there too, so that they are one range to copy.
 * The arrays belong to the caller: they are copies, not views of a kernel's memory, in memory from `TakeBytes`.
 */
export interface RawPush {
  /** The decoded body, or for JSON the unescaped texts; with padding behind the last byte. */
  readonly bytes: Uint8Array;
  readonly streamCount: number;
  readonly rowCount: number;
  readonly pairCount: number;
  /** Protobuf and legacy JSON: the label text `{a="b"}`. JSON: the raw JSON text of the `stream` object, not unescaped. */
  readonly streamLabelStart: Uint32Array;
  readonly streamLabelLength: Uint32Array;
  /** Stream s has the rows `streamRowStart[s] .. streamRowStart[s+1]`; length: streams + 1 */
  readonly streamRowStart: Uint32Array;
  /** OTLP: 1 for streams whose service was named, so that none is looked for among their labels. */
  readonly streamServiceKnown?: Uint8Array;
  /** Whole seconds since the epoch, and the rest in ns. */
  readonly seconds: Float64Array;
  readonly nanos: Uint32Array;
  readonly lineStart: Uint32Array;
  readonly lineLength: Uint32Array;
  /** Row r has the structured metadata pairs `metaStart[r] .. metaStart[r+1]`; length: rows + 1 */
  readonly metaStart: Uint32Array;
  readonly metaNameStart: Uint32Array;
  readonly metaNameLength: Uint32Array;
  readonly metaValueStart: Uint32Array;
  readonly metaValueLength: Uint32Array;
}

/** Gives memory for what is decoded: exactly `length` bytes of arbitrary content, at the start of their buffer, with padding behind them. */
export type TakeBytes = (length: number) => Uint8Array<ArrayBuffer>;

/** Bounds of one decode; a body beyond them is refused before memory is taken for it. */
export interface RawPushLimits {
  readonly maxDecodedBytes: number;
  readonly maxStreams: number;
  readonly maxRows: number;
  readonly maxPairs: number;
}

/** `seconds` of a row that came without a timestamp: the start of year 1, which every age check refuses. */
export const noTimestampSeconds = -62135596800;

/** Seconds beyond this do not fit into 64 bits of nanoseconds. */
export const maxTimestampSeconds = 9_200_000_000;

/**
 * The faults of a push body. Both forms of a kernel report one of these numbers and a position, so that they refuse a
 * body with the same text. assembly/push/fault.ts repeats the numbers.
 */
export const pushFault = {
  /** Not a fault of the body: the columns were too short, the scan is done again with longer ones. */
  columnsFull: 1,
  tooManyStreams: 2,
  tooManyRows: 3,
  tooManyPairs: 4,
  protoTruncated: 10,
  protoVarint: 11,
  protoTag: 12,
  protoWireType: 13,
  protoGroup: 14,
  protoNanos: 15,
  protoSeconds: 16,
  jsonEnd: 30,
  jsonSyntax: 31,
  jsonString: 32,
  jsonEscape: 33,
  jsonDepth: 34,
  jsonBody: 36,
  jsonStreams: 37,
  jsonStream: 38,
  jsonLabels: 39,
  jsonValues: 40,
  jsonEntry: 41,
  jsonTimestampType: 42,
  jsonTimestamp: 43,
  jsonLine: 44,
  jsonMetadata: 45,
  jsonMetadataValue: 46,
} as const;

/** The error of a fault at a byte position of the decoded body. */
export function pushFaultError(
  fault: number,
  position: number,
  limits: RawPushLimits,
): KernelError {
  switch (fault) {
    case pushFault.tooManyStreams:
      return tooLarge(`push has more than ${limits.maxStreams} streams; send smaller batches`);
    case pushFault.tooManyRows:
      return tooLarge(`push has more than ${limits.maxRows} entries; send smaller batches`);
    case pushFault.tooManyPairs:
      return tooLarge(
        `push has more than ${limits.maxPairs} structured metadata pairs; send smaller batches`,
      );
    default:
      return corrupt(`${corruptTexts.get(fault) ?? "malformed body"} at byte ${position}`);
  }
}

const corruptTexts: ReadonlyMap<number, string> = new Map([
  [pushFault.protoTruncated, "protobuf: unexpected end of message"],
  [pushFault.protoVarint, "protobuf: varint is too long"],
  [pushFault.protoTag, "protobuf: illegal field tag"],
  [pushFault.protoWireType, "protobuf: wrong wire type of a known field"],
  [pushFault.protoGroup, "protobuf: groups are not closed or nested too deeply"],
  [pushFault.protoNanos, "protobuf: timestamp nanos must lie within 0 and 999999999"],
  [pushFault.protoSeconds, "protobuf: timestamp seconds do not fit into 64 bits of nanoseconds"],
  [pushFault.jsonEnd, "json: unexpected end of input"],
  [pushFault.jsonSyntax, "json: unexpected character"],
  [pushFault.jsonString, "json: string is not closed"],
  [pushFault.jsonEscape, "json: illegal escape in a string"],
  [pushFault.jsonDepth, "json: values are nested too deeply"],
  [pushFault.jsonBody, "json: the body must be an object"],
  [pushFault.jsonStreams, "json: streams must be an array"],
  [pushFault.jsonStream, "json: each item of streams must be an object"],
  [pushFault.jsonLabels, "json: stream must be an object of labels"],
  [pushFault.jsonValues, "json: values must be an array"],
  [pushFault.jsonEntry, "json: each item of values must be an array of timestamp and line"],
  [
    pushFault.jsonTimestampType,
    "json: timestamp must be a string of decimal digits, not another type",
  ],
  [pushFault.jsonTimestamp, "json: timestamp must be a 64-bit decimal number of nanoseconds"],
  [pushFault.jsonLine, "json: line must be a string"],
  [pushFault.jsonMetadata, "json: structured metadata must be an object of strings"],
  [pushFault.jsonMetadataValue, "json: structured metadata values must be strings"],
]);

/** Thrown inside the twins to leave a scan; never seen by callers. */
export class PushFaultSignal extends Error {
  readonly fault: number;
  readonly position: number;

  constructor(fault: number, position: number) {
    super("push fault");
    this.fault = fault;
    this.position = position;
  }
}

/** The length header of a raw snappy block. */
interface SnappyHeader {
  readonly decodedBytes: number;
  /** Where the elements begin. */
  readonly start: number;
}

/** The text for a body that is not raw snappy, as clients of the push API know it. */
export const snappyCorruptText = "snappy: corrupt input";

/** A block grows by this factor at most: an element of 3 bytes yields at most 64. */
const maxGrowth = 22;

/**
 * Reads the header and refuses it before memory is taken: above `maxBytes` as too_large, and as corrupt when the
 * block is too short to yield that many bytes.
 */
export function readSnappyHeader(block: Uint8Array, maxBytes: number): SnappyHeader {
  let decodedBytes = 0;
  let scale = 1;
  for (let at = 0; at < block.length && at < 5; at++) {
    const byte = block[at]!;
    decodedBytes += (byte & 0x7f) * scale;
    scale *= 128;
    if (byte >= 0x80) continue;
    const start = at + 1;
    if (decodedBytes > 0xffffffff) throw corrupt(snappyCorruptText);
    if (decodedBytes > maxBytes) throw bodyTooLarge(decodedBytes, maxBytes);
    if (decodedBytes > (block.length - start) * maxGrowth) throw corrupt(snappyCorruptText);
    return { decodedBytes, start };
  }
  throw corrupt(snappyCorruptText);
}

/** Refuses an empty body, and one above the limit before it is copied. */
export function refuseJsonSize(body: Uint8Array, limits: RawPushLimits): void {
  if (body.length === 0) throw corrupt("EOF");
  if (body.length > limits.maxDecodedBytes) throw bodyTooLarge(body.length, limits.maxDecodedBytes);
}
