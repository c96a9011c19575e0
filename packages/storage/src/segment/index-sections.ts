import { internal, paddingBytes } from "@skald/model";
import { ByteReader, ByteWriter } from "../bytes.js";
import {
  type ByteArrayPage,
  decodeByteArrays,
  decodeDelta,
  encodeDelta,
  encodeLengths,
} from "../parquet/delta.js";
import { bitWidth, decodeHybrid, encodeHybrid } from "../parquet/hybrid.js";

/**
 * The ids of the sections of a segment's own index. The index is a list of sections that describe themselves, so that
 * later versions can add some and older readers skip what they do not know. See docs/formats/segment.md.
 *
 *     u32 number of sections | per section, 16 bytes: u16 id, u16 kind, u32 ordinal, u32 count, u32 bytes | the sections
 */
export const section = {
  identity: 1,
  summary: 2,
  labelNames: 3,
  labelValues: 4,
  labelStreams: 5,
  labelCodes: 6,
  runCounts: 7,
  runStreams: 8,
  runRows: 9,
  runMinTimes: 10,
  runSpans: 11,
  runLineBytes: 12,
  groupBlocks: 13,
  metadataNames: 14,
  chunkOffsets: 15,
  pageHeaderBytes: 16,
  pageLevelBytes: 17,
  pageStoredBytes: 18,
  pageRawBytes: 19,
  pageValues: 20,
  pageCrcs: 21,
  moreNames: 22,
  moreCounts: 23,
  moreIds: 24,
  moreLevels: 25,
  filters: 26,
  filterGroups: 27,
  filterBlocks: 28,
  filterCrcs: 29,
  digests: 30,
  digestCounts: 31,
  digestMinutes: 32,
  digestRows: 33,
  digestSums: 34,
  levelNames: 35,
  levelBlocks: 36,
  levelRows: 37,
  levelBytes: 38,
  sliceSteps: 39,
  sliceBlocks: 40,
  sliceRows: 41,
  sliceBytes: 42,
  replaces: 43,
  marks: 44,
  setTexts: 45,
  setKinds: 46,
  setRows: 47,
  runMetadataBytes: 48,
  fieldNames: 49,
  fieldFamilies: 50,
  fieldBlocks: 51,
  fieldIrregular: 52,
  fieldOffsets: 53,
  fieldHeaderBytes: 54,
  fieldLevelBytes: 55,
  fieldStoredBytes: 56,
  fieldRawBytes: 57,
  fieldValues: 58,
  fieldCrcs: 59,
  fieldDictionaries: 60,
  fieldDictionaryCrcs: 61,
  fieldKeys: 62,
  pageDictionaries: 63,
  pageDictionaryCrcs: 64,
} as const;

const kinds = { numbers: 1, texts: 2, codes: 3, words: 4 } as const;
const entryBytes = 16;

type Numbers = Float64Array | Uint32Array | readonly number[];

/** Collects sections and writes them as one piece. The ordinal tells sections of one id apart. */
export class SectionWriter {
  readonly #table = new ByteWriter(1024);
  readonly #body = new ByteWriter(16 * 1024);
  readonly #scratch = new ByteWriter(4096);
  #count = 0;

  /** Whole numbers of at most 51 bits. */
  numbers(id: number, values: Numbers, ordinal = 0): void {
    this.#scratch.clear();
    const isTyped = values instanceof Float64Array || values instanceof Uint32Array;
    encodeDelta(this.#scratch, isTyped ? values : Float64Array.from(values), values.length, 0n);
    this.#add(id, kinds.numbers, ordinal, values.length);
  }

  texts(id: number, texts: readonly string[], ordinal = 0): void {
    this.#scratch.clear();
    const bytes = texts.map((text) => Buffer.from(text, "utf8"));
    const lengths = Uint32Array.from(bytes, (b) => b.byteLength);
    encodeLengths(this.#scratch, lengths, lengths.length);
    for (const b of bytes) this.#scratch.append(b);
    this.#add(id, kinds.texts, ordinal, texts.length);
  }

  /** Small numbers that often repeat. */
  codes(id: number, values: Numbers, ordinal = 0): void {
    this.#scratch.clear();
    const codes = values instanceof Uint32Array ? values : Uint32Array.from(values);
    const width = bitWidth(codes.reduce((most, code) => Math.max(most, code), 0));
    this.#scratch.u8(width);
    encodeHybrid(this.#scratch, codes, codes.length, width);
    this.#add(id, kinds.codes, ordinal, values.length);
  }

  /** Numbers of 32 bits as they are, such as checksums; negative ones as two's complement. */
  words(id: number, values: Numbers, ordinal = 0): void {
    this.#scratch.clear();
    for (const value of values) this.#scratch.u32(value);
    this.#add(id, kinds.words, ordinal, values.length);
  }

  finish(): Uint8Array {
    const out = new ByteWriter(4 + this.#table.length + this.#body.length);
    out.u32(this.#count);
    out.append(this.#table.view());
    out.append(this.#body.view());
    return out.view();
  }

  #add(id: number, kind: number, ordinal: number, count: number): void {
    const table = this.#table;
    table.u32(id | (kind << 16));
    table.u32(ordinal);
    table.u32(count);
    table.u32(this.#scratch.length);
    this.#body.append(this.#scratch.view());
    this.#count++;
  }
}

interface Section {
  readonly kind: number;
  readonly count: number;
  readonly bytes: Uint8Array;
}

/** Up to this many sections are found by walking the table; the wanted one is most often behind the last one found. */
const maxListed = 128;

/** Finds sections and decodes them on demand. Throws `internal` when one is missing or not what it must be. */
export class SectionReader {
  readonly #bytes: Uint8Array;
  readonly #table: DataView;
  readonly #count: number;
  /** Where each section begins, and the end of the last. */
  readonly #starts: Uint32Array;
  /** The places of the sections when there are many. */
  readonly #places: Map<number, number> | undefined;
  #next = 0;

  /** The bytes must have padding behind them. */
  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#count = new ByteReader(bytes).count(entryBytes);
    this.#table = new DataView(bytes.buffer, bytes.byteOffset + 4, this.#count * entryBytes);
    this.#starts = new Uint32Array(this.#count + 1);
    this.#places = this.#count > maxListed ? new Map() : undefined;
    let at = 4 + this.#count * entryBytes;
    for (let place = 0; place < this.#count; place++) {
      this.#starts[place] = at;
      at += this.#table.getUint32(place * entryBytes + 12, true);
      if (at > bytes.byteLength) throw internal("index section ends behind the index");
      this.#places?.set(keyOf(this.#idAt(place), this.#ordinalAt(place)), place);
    }
    this.#starts[this.#count] = at;
  }

  /** The bytes of the sections for another reader, without the sections of some ids. */
  without(ids: readonly number[]): Uint8Array {
    const kept: number[] = [];
    let bodyBytes = 0;
    for (let place = 0; place < this.#count; place++) {
      if (ids.includes(this.#idAt(place))) continue;
      kept.push(place);
      bodyBytes += this.#starts[place + 1]! - this.#starts[place]!;
    }
    const out = new Uint8Array(4 + kept.length * entryBytes + bodyBytes);
    new DataView(out.buffer).setUint32(0, kept.length, true);
    let entry = 4;
    let at = 4 + kept.length * entryBytes;
    for (const place of kept) {
      const from = 4 + place * entryBytes;
      out.set(this.#bytes.subarray(from, from + entryBytes), entry);
      entry += entryBytes;
      const body = this.#bytes.subarray(this.#starts[place], this.#starts[place + 1]);
      out.set(body, at);
      at += body.byteLength;
    }
    return out;
  }

  /** Values and bytes of all sections by id, in the order of the file. */
  sizes(): Map<number, { count: number; bytes: number }> {
    const sizes = new Map<number, { count: number; bytes: number }>();
    for (let place = 0; place < this.#count; place++) {
      const id = this.#idAt(place);
      const { count, bytes } = this.#sectionAt(place);
      const before = sizes.get(id) ?? { count: 0, bytes: 0 };
      sizes.set(id, { count: before.count + count, bytes: before.bytes + bytes.byteLength });
    }
    return sizes;
  }

  has(id: number, ordinal = 0): boolean {
    return this.#placeOf(id, ordinal) !== undefined;
  }

  count(id: number, ordinal = 0): number {
    return this.#find(id, ordinal).count;
  }

  numbers(id: number, ordinal = 0): Float64Array {
    const { bytes, count } = this.#find(id, ordinal, kinds.numbers);
    // A constant difference costs no bits, but every block of 128 values has a head.
    if (count > bytes.byteLength * 128) throw internal(`index section ${id} is cut short`);
    return decodeDelta(bytes, count, 0n).values;
  }

  texts(id: number, ordinal = 0): string[] {
    const { offsets, bytes } = this.textBytes(id, ordinal);
    const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const texts: string[] = new Array(offsets.length - 1);
    for (let i = 0; i < texts.length; i++) {
      texts[i] = all.toString("utf8", offsets[i]!, offsets[i + 1]!);
    }
    return texts;
  }

  textBytes(id: number, ordinal = 0): ByteArrayPage {
    const { bytes, count } = this.#find(id, ordinal, kinds.texts);
    if (count > bytes.byteLength * 128) throw internal(`index section ${id} is cut short`);
    return decodeByteArrays(bytes, count);
  }

  codes(id: number, ordinal: number, limit: number): Uint32Array {
    const { bytes, count } = this.#find(id, ordinal, kinds.codes);
    if (count > maxCodes) throw internal(`index section ${id} has ${count} codes`);
    const values = new Uint32Array(count);
    decodeHybrid(bytes.subarray(1), bytes[0] ?? 0, values, count);
    for (const value of values) {
      if (value >= limit) throw internal(`index section ${id} has the code ${value} of ${limit}`);
    }
    return values;
  }

  words(id: number, ordinal = 0): Uint32Array {
    const { bytes, count } = this.#find(id, ordinal, kinds.words);
    if (bytes.byteLength !== count * 4) throw internal(`index section ${id} has a wrong length`);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const words = new Uint32Array(count);
    for (let i = 0; i < count; i++) words[i] = view.getUint32(i * 4, true);
    return words;
  }

  #find(id: number, ordinal: number, kind?: number): Section {
    const place = this.#placeOf(id, ordinal);
    if (place === undefined) throw internal(`index lacks section ${id}/${ordinal}`);
    const found = this.#sectionAt(place);
    if (kind !== undefined && found.kind !== kind) {
      throw internal(`index section ${id}/${ordinal} is of kind ${found.kind}, not ${kind}`);
    }
    return found;
  }

  #placeOf(id: number, ordinal: number): number | undefined {
    if (this.#places !== undefined) return this.#places.get(keyOf(id, ordinal));
    for (let i = 0, place = this.#next; i < this.#count; i++, place++) {
      if (place >= this.#count) place = 0;
      if (this.#idAt(place) !== id || this.#ordinalAt(place) !== ordinal) continue;
      this.#next = place + 1;
      return place;
    }
    return undefined;
  }

  #idAt(place: number): number {
    return this.#table.getUint16(place * entryBytes, true);
  }

  #ordinalAt(place: number): number {
    return this.#table.getUint32(place * entryBytes + 4, true);
  }

  #sectionAt(place: number): Section {
    const entry = place * entryBytes;
    return {
      kind: this.#table.getUint16(entry + 2, true),
      count: this.#table.getUint32(entry + 8, true),
      bytes: this.#bytes.subarray(this.#starts[place], this.#starts[place + 1]),
    };
  }
}

/** A number, because a text for each section would be most of the cost of opening a small segment. */
function keyOf(id: number, ordinal: number): number {
  return id * 2 ** 32 + ordinal;
}

/** More streams than any segment has; bounds what a section of runs may make a reader allocate. */
const maxCodes = 2 ** 26;

/** The bytes with padding behind them, as decoders need. */
export function withPadding(bytes: Uint8Array): Uint8Array {
  const padded = new Uint8Array(bytes.byteLength + paddingBytes).subarray(0, bytes.byteLength);
  padded.set(bytes);
  return padded;
}
