import { deserialize, serialize } from "node:v8";
import type { Labels } from "@skald/model";

/** Distinct label sets in columns: plain data, in which each label pair is there once. */
export interface StreamColumns {
  /** Two numbers for each stream, equal for equal label sets and for no others. */
  readonly hashes: Uint32Array;
  /** The pairs of stream s are `pairs[starts[s] .. starts[s + 1])`, in the order of their names. */
  readonly starts: Uint32Array;
  readonly pairs: Uint32Array;
  /** Name and value of each pair. */
  readonly names: readonly string[];
  readonly values: readonly string[];
}

/** What was found, as it crosses threads and services: whoever passes it on in between does not look inside. */
export type EncodedStreams = Uint8Array<ArrayBuffer>;

/** Streams, or the texts of label names or values. */
export type FoundStreams = StreamColumns | readonly string[];

export function encodeStreams(found: FoundStreams): EncodedStreams {
  return new Uint8Array(serialize(found));
}

/** Throws when the bytes are not what `encodeStreams` made. */
export function decodeStreams<Found extends FoundStreams>(bytes: EncodedStreams): Found {
  return deserialize(bytes) as Found;
}

export function streamCountOf({ starts }: StreamColumns): number {
  return starts.length - 1;
}

/** The labels of one of the streams. */
export function labelsAt({ starts, pairs, names, values }: StreamColumns, stream: number): Labels {
  const own = pairs.subarray(starts[stream], starts[stream + 1]);
  return {
    names: Array.from(own, (pair) => names[pair]!),
    values: Array.from(own, (pair) => values[pair]!),
  };
}
