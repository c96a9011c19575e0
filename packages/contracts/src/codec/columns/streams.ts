import type { Labels } from "@skald/model";
import {
  decodeMessage,
  encodeMessage,
  field,
  type MessageCodec,
  message,
  u32s,
} from "@skald/transport/protobuf";
import type { StreamColumns } from "../../querier.js";
import type { EncodedStreams } from "../../scan.js";
import { areBelow, ascends, bytesColumn, textList } from "./columns.js";

/** Of `StreamColumns`. */
export const streamColumns: MessageCodec<StreamColumns> = message<StreamColumns>(
  {
    hashes: field(1, u32s),
    starts: field(2, u32s),
    pairs: field(3, u32s),
    names: field(4, textList),
    pairNames: field(5, u32s),
    values: field(6, bytesColumn),
    valueHashes: field(7, u32s),
  },
  problemOf,
);

function problemOf(streams: StreamColumns): string | undefined {
  const { hashes, starts, pairs, names, pairNames, values, valueHashes } = streams;
  const { length } = pairNames;
  if (starts[0] !== 0 || !ascends(starts)) return "streams do not ascend";
  if (starts[starts.length - 1] !== pairs.length) return "pairs are of no stream";
  if (hashes.length !== 2 * (starts.length - 1)) return "there is not a hash for each stream";
  if (values.offsets.length !== length + 1 || valueHashes.length !== 2 * length)
    return "there is not a value for each pair";
  if (!areBelow(pairs, length) || !areBelow(pairNames, names.length)) return "a label has no text";
  return undefined;
}

export function encodeStreams(found: StreamColumns): EncodedStreams {
  const { hashes, starts, pairs, pairNames, values, valueHashes } = found;
  const columns = [hashes, starts, pairs, pairNames, values.offsets, valueHashes, values.bytes];
  const size = columns.reduce((total, { byteLength }) => total + byteLength, 64 * 1024);
  return encodeMessage(streamColumns, found, size);
}

/** Throws invalid_argument when the bytes are not what `encodeStreams` made. */
export function decodeStreams(bytes: EncodedStreams): StreamColumns {
  return decodeMessage(streamColumns, bytes);
}

/** The same for texts: one after the other, because one long text crosses at once. */
export function encodeTexts(texts: readonly string[]): EncodedStreams {
  return encodeMessage(textList, texts);
}

/** Throws invalid_argument when the bytes are not what `encodeTexts` made. */
export function decodeTexts(bytes: EncodedStreams): string[] {
  return [...decodeMessage(textList, bytes)];
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
