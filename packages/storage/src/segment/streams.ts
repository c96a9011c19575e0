import {
  compileMatcher,
  firstIndex,
  internal,
  type Labels,
  type Matcher,
  placeAmong,
  quote,
} from "@skald/model";
import { LRUCache } from "lru-cache";
import type { Column, ImageReader } from "./index-image.js";
import { type SectionReader, section } from "./index-sections.js";
import type { LabelTable, StreamColumn } from "./segment.js";

/** The part with the hashes of the streams, before those of the names. */
const hashParts = 1;

/** The parts of an image with the streams of a segment: their hashes, then the columns of each name. Throws `internal`. */
export function decodeStreams(sections: SectionReader, count: number): Column[] {
  const names = sections.texts(section.labelNames);
  const sizes = { streamCount: count, nameCount: names.length };
  const columns = names.map((_, ordinal) => decodeColumn(sections, ordinal, sizes));
  return [hashStreams(count, names, columns), ...columns.flat()];
}

/**
 * The streams of an opened segment, by their labels. Labels and texts of a stream are made on demand and not kept: all
 * threads share the columns, but could not share texts.
 */
export class StreamTable implements LabelTable {
  readonly count: number;
  readonly names: readonly string[];
  readonly hashes: Uint32Array;
  made = 0;
  readonly #image: ImageReader;
  readonly #part: number;
  readonly #columns: (StreamColumn | undefined)[] = [];
  readonly #ordinals: ReadonlyMap<string, number>;

  /** The streams of an image, whose parts begin at `part`. */
  constructor(image: ImageReader, part: number, sections: SectionReader, count: number) {
    this.count = count;
    this.names = sections.texts(section.labelNames);
    this.hashes = image.words(part);
    this.#image = image;
    this.#part = part + hashParts;
    this.#ordinals = new Map(this.names.map((name, ordinal) => [name, ordinal]));
  }

  column(name: string): StreamColumn | undefined {
    const ordinal = this.#ordinals.get(name);
    return ordinal === undefined ? undefined : this.#columnAt(ordinal);
  }

  match(matchers: readonly Matcher[]): Uint32Array {
    return matchLabels(this.count, (name) => this.column(name), matchers);
  }

  labels(stream: number): Labels {
    this.made++;
    const names: string[] = [];
    const values: string[] = [];
    this.#forEachPair(stream, (column, code) => {
      names.push(column.name);
      values.push(column.value(code));
    });
    return { names, values };
  }

  text(stream: number): string {
    this.made++;
    let text = "{";
    this.#forEachPair(stream, (column, code) => {
      if (text.length > 1) text += ", ";
      text += `${column.name}=${quote(column.value(code))}`;
    });
    return `${text}}`;
  }

  /** Columns come in the order of their names, and so do the pairs of a stream. */
  #forEachPair(stream: number, visit: (column: StreamColumn, code: number) => void): void {
    if (!(stream < this.count)) throw internal(`index has no stream ${stream}`);
    for (let ordinal = 0; ordinal < this.names.length; ordinal++) {
      const column = this.#columnAt(ordinal);
      const code = codeOf(column, stream);
      if (code > 0) visit(column, code - 1);
    }
  }

  #columnAt(ordinal: number): StreamColumn {
    this.#columns[ordinal] ??= openColumn(
      this.#image,
      this.#part + ordinal * partsPerName,
      this.names[ordinal]!,
    );
    return this.#columns[ordinal];
  }
}

/** The hash of a label set is the sum of those of its pairs: each distinct value is hashed once. */
function hashStreams(
  count: number,
  names: readonly string[],
  columns: readonly (readonly Column[])[],
): Uint32Array {
  const hashes = new Uint32Array(2 * count);
  names.forEach((name, ordinal) => {
    const [, , codes, streams, valueHashes] = columns[ordinal] as StreamParts;
    for (const lane of [0, 1] as const) {
      const ofName = hashText(name, lane);
      for (let at = 0; at < codes.length; at++) {
        const code = codes[at]!;
        if (code === 0) continue;
        const stream = streams.length === 0 ? at : streams[at]!;
        hashes[2 * stream + lane]! += hashPair(ofName, valueHashes[2 * (code - 1) + lane]!);
      }
    }
  });
  return hashes;
}

/** What an image has for a name: offsets and bytes of its values, codes, streams, hashes of its values. */
type StreamParts = readonly [Uint32Array, Uint8Array, Column, Uint32Array, Uint32Array];
const partsPerName = 5;
/** Columns have a code for every stream up to this many codes of all names together. */
const maxSpelledOut = 32 * 1024 * 1024;
/** A column that at least one in this many streams has has a code for every stream anyway. */
const densePart = 8;
/** Values of a column that are kept as text once they were asked for. */
const maxKeptTexts = 4096;

/** The parts of an image for a name. Throws `internal`. */
function decodeColumn(
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
function openColumn(image: ImageReader, part: number, name: string): StreamColumn {
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

/** The code of a stream plus one; 0 when the stream lacks the name. */
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
  const code = firstIndex(0, count, (at) => value(at) >= wanted);
  return code < count && value(code) === wanted ? code + 1 : 0;
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

/** The hash of a name or value; the two lanes are independent. */
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

/** A code that at most one in this many streams has is searched for, instead of a look at each stream. */
const searchedPart = 64;

/**
 * The streams of `0 .. count)` that satisfy every matcher, ascending. A matcher is tested once per distinct value of
 * its label, never per stream, so a regular expression over 20,000 streams of 30 namespaces runs 30 times; and only for
 * streams that the matchers before it left.
 */
export function matchLabels(
  count: number,
  columnOf: (name: string) => StreamColumn | undefined,
  matchers: readonly Matcher[],
): Uint32Array {
  let left: Uint32Array | undefined;
  for (const matcher of cheapestFirst(matchers)) {
    const column = columnOf(matcher.name);
    const test = testOf(matcher);
    const acceptsAbsent = test("");
    if (column === undefined) {
      if (acceptsAbsent) continue;
      return new Uint32Array(0);
    }
    if (matcher.op === "=" && !acceptsAbsent) {
      const code = column.find(matcher.value);
      if (code === 0) return new Uint32Array(0);
      left = keepCode(column, code, left, count);
    } else {
      left = keepAccepted(column, acceptedCodes(column, test, acceptsAbsent), left, count);
    }
    if (left.length === 0) return left;
  }
  return left ?? all(count);
}

type Test = (value: string) => boolean;

/** A query asks many segments the same question, and compiling an expression takes longer than a small segment. */
const tests = new LRUCache<string, Test>({ max: 256 });

function testOf(matcher: Matcher): Test {
  if (matcher.op === "=" || matcher.op === "!=") return compileMatcher(matcher);
  const key = `${matcher.op}${matcher.value}`;
  let test = tests.get(key);
  if (test === undefined) {
    test = compileMatcher(matcher);
    tests.set(key, test);
  }
  return test;
}

/** Equalities come first: they find their value by binary search and leave fewer streams for the others. */
function cheapestFirst(matchers: readonly Matcher[]): Matcher[] {
  return [...matchers].sort((a, b) => Number(b.op === "=") - Number(a.op === "="));
}

/** One flag per code of the column; 0 stands for streams without the name. */
function acceptedCodes(
  column: StreamColumn,
  test: (value: string) => boolean,
  acceptsAbsent: boolean,
): Uint8Array {
  const accepted = new Uint8Array(column.valueCount + 1);
  accepted[0] = acceptsAbsent ? 1 : 0;
  for (let code = 0; code < column.valueCount; code++) {
    accepted[code + 1] = test(column.value(code)) ? 1 : 0;
  }
  return accepted;
}

function keepCode(
  column: StreamColumn,
  code: number,
  left: Uint32Array | undefined,
  count: number,
): Uint32Array {
  if (left !== undefined) return left.filter((stream) => codeOf(column, stream) === code);
  const { codes, streams, valueCount } = column;
  if (valueCount * searchedPart < count) {
    const accepted = new Uint8Array(valueCount + 1);
    accepted[code] = 1;
    return keepAccepted(column, accepted, undefined, count);
  }
  const places: number[] = [];
  for (let at = codes.indexOf(code); at >= 0; at = codes.indexOf(code, at + 1)) {
    places.push(streams === undefined ? at : streams[at]!);
  }
  return Uint32Array.from(places);
}

function keepAccepted(
  column: StreamColumn,
  accepted: Uint8Array,
  left: Uint32Array | undefined,
  count: number,
): Uint32Array {
  if (left !== undefined) return left.filter((stream) => accepted[codeOf(column, stream)] === 1);
  const kept = new Uint32Array(count);
  let length = 0;
  for (let stream = 0; stream < count; stream++) {
    if (accepted[codeOf(column, stream)] === 1) kept[length++] = stream;
  }
  return kept.subarray(0, length);
}

function all(count: number): Uint32Array {
  const streams = new Uint32Array(count);
  for (let stream = 0; stream < count; stream++) streams[stream] = stream;
  return streams;
}
