/**
 * A push body as the scan kernels find it: columns of ranges into `bytes`, nothing validated beyond the syntax. The compiled
 * ones pack the texts: lines of neighbouring rows are neighbours there too, which makes them one range to copy.
 * The arrays are the caller's: they are copies, not views of a kernel's memory, made where `TakeBytes` says.
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

/** Gives memory for what is decoded: exactly so many bytes of arbitrary content, at the start of their buffer, with padding behind. */
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
