import { internal, placeAmong } from "@skald/model";
import type { Column, ImageReader } from "./index-image.js";
import { type SectionReader, section } from "./index-sections.js";

/** One label name over the streams of an opened segment. */
export interface StreamColumn {
  readonly name: string;
  /** Distinct values; they are sorted. */
  readonly valueCount: number;
  value(code: number): string;
  /** The values as UTF-8: value i is `bytes[offsets[i] .. offsets[i + 1])`. */
  readonly bytes: Uint8Array;
  readonly offsets: Uint32Array;
  /** The code of a value plus one, 0 when no stream has the value. */
  find(value: string): number;
  /** By stream, the code of its value plus one; 0 for a stream without the name. With `streams`, by place in that list. */
  readonly codes: Column;
  /** The streams that have the name, ascending, where they are few among many names; then all codes are above 0. */
  readonly streams: Uint32Array | undefined;
  /** Two numbers for each value: its hash. */
  readonly hashes: Uint32Array;
}

/** What an image has for a name: offsets and bytes of its values, codes, streams, hashes of its values. */
export type StreamParts = readonly [Uint32Array, Uint8Array, Column, Uint32Array, Uint32Array];
export const partsPerName = 5;
/** Columns are spelled out for every stream up to so many codes of all names together. */
const maxSpelledOut = 32 * 1024 * 1024;
/** A column that at least one of so many streams has is spelled out anyway. */
const densePart = 8;
/** Values of a column that are kept as text once they were asked for. */
const maxKeptTexts = 4096;

/** The parts of an image for a name. Throws `internal`. */
export function decodeColumn(
  sections: SectionReader,
  ordinal: number,
  { streamCount, nameCount }: { readonly streamCount: number; readonly nameCount: number },
): StreamParts {
  const { offsets, bytes } = sections.textBytes(section.labelValues, ordinal);
  const valueCount = offsets.length - 1;
  const codes = sections.codes(section.labelCodes, ordinal, valueCount);
  const streams = sections.has(section.labelStreams, ordinal)
    ? Uint32Array.from(sections.numbers(section.labelStreams, ordinal))
    : undefined;
  const count = streams === undefined ? streamCount : streams.length;
  if (codes.length !== count) {
    throw internal(`index has ${codes.length} codes for label ${ordinal} of ${count} streams`);
  }
  if (streams !== undefined) checkAscending(streams, streamCount);
  const isSpelledOut =
    streams === undefined ||
    streamCount * nameCount <= maxSpelledOut ||
    streams.length * densePart >= streamCount;
  const wanted = codesFor(valueCount, isSpelledOut ? streamCount : codes.length);
  for (let i = 0; i < codes.length; i++) {
    wanted[isSpelledOut && streams !== undefined ? streams[i]! : i] = codes[i]! + 1;
  }
  const listed = isSpelledOut || streams === undefined ? new Uint32Array(0) : streams;
  return [offsets, bytes, wanted, listed, hashValues(bytes, offsets)];
}

/** The column of a name, from the parts of an image that `decodeColumn` made. */
export function openColumn(image: ImageReader, part: number, name: string): StreamColumn {
  const offsets = image.words(part);
  const bytes = image.bytes(part + 1);
  const codes = image.column(part + 2);
  const streams = image.words(part + 3);
  const text = Buffer.from(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.byteLength);
  const valueCount = offsets.length - 1;
  const kept: (string | undefined)[] | undefined = valueCount <= maxKeptTexts ? [] : undefined;
  const read = (code: number) => text.toString("utf8", offsets[code]!, offsets[code + 1]!);
  const value =
    kept === undefined
      ? read
      : (code: number) => {
          kept[code] ??= read(code);
          return kept[code];
        };
  return {
    name,
    valueCount,
    value,
    bytes,
    offsets,
    find: (wanted) => findSorted(valueCount, value, wanted),
    codes,
    streams: streams.length === 0 ? undefined : streams,
    hashes: image.words(part + 4),
  };
}

/** The code of a stream plus one, 0 when it has not the name. */
export function codeOf({ codes, streams }: StreamColumn, stream: number): number {
  if (streams === undefined) return codes[stream]!;
  const place = placeAmong(streams, stream);
  return place < 0 ? 0 : codes[place]!;
}

function codesFor(most: number, length: number): Uint8Array | Uint16Array | Uint32Array {
  if (most < 0x100) return new Uint8Array(length);
  return most < 0x10000 ? new Uint16Array(length) : new Uint32Array(length);
}

function findSorted(count: number, value: (code: number) => string, wanted: string): number {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (value(middle) < wanted) low = middle + 1;
    else high = middle;
  }
  return low < count && value(low) === wanted ? low + 1 : 0;
}

const lanes = [0x811c9dc5, 0x9747b28c] as const;
const primes = [0x01000193, 0x85ebca6b] as const;

function hashBytes(bytes: Uint8Array, from: number, to: number, lane: 0 | 1): number {
  let hash: number = lanes[lane];
  const prime = primes[lane];
  for (let i = from; i < to; i++) {
    hash = Math.imul(hash ^ bytes[i]!, prime);
    hash ^= hash >>> 15;
  }
  return hash >>> 0;
}

/** Two numbers for each value of a column. */
export function hashValues(bytes: Uint8Array, offsets: Uint32Array): Uint32Array {
  const hashes = new Uint32Array(2 * (offsets.length - 1));
  for (let code = 0; code + 1 < offsets.length; code++) {
    for (const lane of [0, 1] as const) {
      hashes[2 * code + lane] = hashBytes(bytes, offsets[code]!, offsets[code + 1]!, lane);
    }
  }
  return hashes;
}

/** The hash of a name or value; the two lanes have nothing to do with each other. */
export function hashText(text: string, lane: 0 | 1): number {
  const bytes = Buffer.from(text);
  return hashBytes(bytes, 0, bytes.length, lane);
}

/** The hash of a label from those of its name and value; the sum over all labels (modulo 2^32) is that of the set. */
export function hashPair(ofName: number, ofValue: number): number {
  // The same text as a name and as a value must not cancel out.
  let hash = Math.imul(ofName, 0x9e3779b1) ^ ofValue;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

function checkAscending(streams: Uint32Array, limit: number): void {
  let least = 0;
  for (const stream of streams) {
    if (stream < least || stream >= limit)
      throw internal(`index has stream ${stream} out of order`);
    least = stream + 1;
  }
}
