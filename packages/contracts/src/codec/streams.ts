import { deserialize, serialize } from "node:v8";
import type { BytesColumn, Labels } from "@skald/model";

/** Distinct label sets in columns: plain data, in which each label pair is there once. */
export interface StreamColumns {
  /** Two numbers for each stream, equal for equal label sets and for no others. */
  readonly hashes: Uint32Array;
  /** The pairs of stream s are `pairs[starts[s] .. starts[s + 1])`, in the order of their names. */
  readonly starts: Uint32Array;
  readonly pairs: Uint32Array;
  /** Names of labels, in any order. */
  readonly names: readonly string[];
  /** Of each pair: its name, by place in `names`. */
  readonly pairNames: Uint32Array;
  /** Of each pair: its value, as UTF-8, and two numbers that are the hash of that. */
  readonly values: BytesColumn;
  readonly valueHashes: Uint32Array;
}

/** What was found, as it crosses threads and services: whoever passes it on in between does not look inside. */
export type EncodedStreams = Uint8Array<ArrayBuffer>;

export function encodeStreams(found: StreamColumns): EncodedStreams {
  return new Uint8Array(serialize(found));
}

/** Throws when the bytes are not what `encodeStreams` made. */
export function decodeStreams(bytes: EncodedStreams): StreamColumns {
  return deserialize(bytes) as StreamColumns;
}

/** The same for texts: one after the other, because one long text crosses at once. */
export function encodeTexts(texts: readonly string[]): EncodedStreams {
  let end = 0;
  const ends = Uint32Array.from(texts, (text) => (end += text.length));
  return new Uint8Array(serialize({ ends, text: texts.join("") }));
}

/** Throws when the bytes are not what `encodeTexts` made. */
export function decodeTexts(bytes: EncodedStreams): string[] {
  const { ends, text } = deserialize(bytes) as { ends: Uint32Array; text: string };
  return Array.from(ends, (end, i) => text.slice(ends[i - 1] ?? 0, end));
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
