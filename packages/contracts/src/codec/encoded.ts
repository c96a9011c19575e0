import type { LogPartial, LogResult, MetricPartial } from "@skald/logql";
import type { Labels } from "@skald/model";
import type { StreamColumns } from "../querier.js";
import type {
  EncodedOutcome,
  EncodedStreams,
  ScanOutcome,
  ScanPlan,
  VolumeOutcome,
} from "../scan.js";
import { decode, encode } from "./codec.js";

// Answers that cross threads and services as encoded bytes. A scan encodes them where the data is, and the merge of
// partial results decodes them. Each is in memory of its own, which can be moved to another thread. Decoding throws
// invalid_argument when the bytes are not such a message.

/** Bytes that the labels of a series or a row take, about, and the rest of an outcome. */
const labelSetBytes = 64;
const restBytes = 1024;

export function encodeOutcome(outcome: ScanOutcome): EncodedOutcome {
  return encode("Outcome", outcome, sizeOfPartial(outcome.partial));
}

export function decodeOutcome<Plan extends ScanPlan>(bytes: EncodedOutcome): ScanOutcome<Plan> {
  return decode("Outcome", bytes) as ScanOutcome<Plan>;
}

function sizeOfPartial(partial: LogPartial | MetricPartial): number {
  const sets = partial.labels.length * labelSetBytes;
  if ("mode" in partial) {
    const { start, bucket, count, value, extra, stream } = partial;
    return sizeOf(start, bucket, count, value, extra, stream) + sets + restBytes;
  }
  const { rowCount, lines } = partial;
  const bytesPerRow = 48;
  return rowCount * bytesPerRow + (lines.offsets[rowCount] ?? 0) + 4 * sets + restBytes;
}

export function encodeVolumes(found: VolumeOutcome): EncodedOutcome {
  const { groups, group, bucket, rows, bytes, streams } = found;
  const size = sizeOf(group, bucket, rows, bytes, streams) + restBytes;
  return encode("VolumeOutcome", found, size + groups.length * labelSetBytes);
}

export function decodeVolumes(bytes: EncodedOutcome): VolumeOutcome {
  return decode("VolumeOutcome", bytes);
}

export function encodeLogRows(rows: LogResult): Uint8Array {
  return encode("Streams", rows);
}

export function decodeLogRows(bytes: Uint8Array): LogResult {
  return { kind: "streams", ...decode("Streams", bytes) };
}

export function encodeTexts(texts: readonly string[]): EncodedStreams {
  return encode("TextList", texts);
}

export function decodeTexts(bytes: EncodedStreams): string[] {
  return [...decode("TextList", bytes)];
}

export function encodeStreams(found: StreamColumns): EncodedStreams {
  const { hashes, starts, pairs, pairNames, values, valueHashes } = found;
  const columns = sizeOf(hashes, starts, pairs, pairNames, values.offsets, valueHashes);
  return encode("StreamColumns", found, columns + values.bytes.length + 64 * restBytes);
}

export function decodeStreams(bytes: EncodedStreams): StreamColumns {
  return decode("StreamColumns", bytes);
}

function sizeOf(...columns: readonly ArrayBufferView[]): number {
  return columns.reduce((total, { byteLength }) => total + byteLength, 0);
}

export function streamCountOf({ starts }: StreamColumns): number {
  return starts.length - 1;
}

/** The labels of each stream. */
export function labelSetsOf(streams: StreamColumns): Labels[] {
  const { starts, pairs, names, pairNames } = streams;
  const values = pairValues(streams);
  return Array.from({ length: streamCountOf(streams) }, (_, stream) => {
    const own = [...pairs.subarray(starts[stream], starts[stream + 1])];
    return {
      names: own.map((pair) => names[pairNames[pair]!]!),
      values: own.map((pair) => values[pair]!),
    };
  });
}

/** The value of each pair. */
export function pairValues({ values: { bytes, offsets } }: StreamColumns): string[] {
  const all = Buffer.from(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: offsets.length - 1 }, (_, pair) =>
    all.toString("utf8", offsets[pair], offsets[pair + 1]),
  );
}
