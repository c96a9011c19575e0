import { crc32 } from "node:zlib";
import {
  type Block,
  type BytesColumn,
  type DictionaryColumn,
  firstIndex,
  internal,
  type MetadataColumn,
  paddingBytes,
  placeAmong,
} from "@skald/model";
import type { PageMemory } from "../../bytes.js";
import { decodeByteArrays, decodeDelta } from "../../parquet/delta.js";
import { decodeHybrid } from "../../parquet/hybrid.js";
import { zstd } from "../../zstd.js";
import type { RangeReader } from "../range-reader.js";
import { type BlockRange, type PageSet, wrongChecksum } from "../segment.js";
import { type DictionaryPlace, decodeCodes, dictionaries } from "./dictionaries.js";
import {
  firstMetadataColumn,
  lineColumn,
  type SegmentIndex,
  timestampColumn,
} from "./index-reader.js";

/** A block as it lies in its file, and what reads it. */
interface StoredBlock {
  readonly index: SegmentIndex;
  readonly reader: PageReader;
  readonly pages: PageSet | undefined;
  /** Where decompressed pages go; to memory of their own when absent. */
  readonly memory: PageMemory | undefined;
  readonly block: number;
  readonly rowCount: number;
  readonly runs: Block["runs"];
  readonly facts: Block["facts"];
  /** Names the file in the error of whatever fails. */
  guard<T>(read: () => T): T;
}

/** A sealed block: each column is read, checked and decoded when its values are first asked for, and then kept. */
export function segmentBlock(stored: StoredBlock): Block {
  const { index, rowCount, block, guard } = stored;
  const page = (column: number) => stored.reader.page(column, block, stored);
  const columns = new Map<string, MetadataColumn | undefined>();
  let timestamps: Float64Array | undefined;
  let lines: BytesColumn | undefined;
  let names: readonly string[] | undefined;
  let pairs: MorePairs | undefined;

  function metadataColumn(name: string): MetadataColumn | undefined {
    const ownColumn = index.metadataNames.indexOf(name);
    if (ownColumn >= 0) return textColumn(firstMetadataColumn + ownColumn);
    const more = index.more();
    const number = more.numberOf(name);
    const place = number === undefined ? -1 : placeAmong(more.ofBlock(block), number);
    if (place < 0) return undefined;
    return new LazyBytes(() =>
      guard(() => {
        pairs ??= readPairs(page, index, block, rowCount);
        return pairColumn(pairs, place, rowCount);
      }),
    );
  }

  function fieldColumn(name: string): MetadataColumn | undefined {
    const field = index.fieldNames().indexOf(name);
    return field < 0 ? undefined : textColumn(index.columnCount + field);
  }

  function textColumn(column: number): MetadataColumn | undefined {
    if (index.pages(column).values[block] === 0) return undefined;
    const place = index.dictionaryOf(column, block);
    if (place === undefined)
      return new LazyBytes(() => guard(() => nullableColumn(page(column), rowCount)));
    return new LazyCodes(() =>
      guard(() => ({
        dictionary: stored.reader.dictionary(column, place, stored),
        codes: decodeCodes(page(column), rowCount, place.valueCount),
      })),
    );
  }

  return {
    baseNs: index.baseNs,
    rowCount,
    runs: stored.runs,
    facts: stored.facts,
    timestamps() {
      timestamps ??= guard(
        () => decodeDelta(page(timestampColumn).body, rowCount, index.baseNs).values,
      );
      return timestamps;
    },
    lines() {
      lines ??= guard(() => decodeByteArrays(page(lineColumn).body, rowCount));
      return lines;
    },
    metadataNames() {
      names ??= guard(() => index.namesOf(block));
      return names;
    },
    metadata(name) {
      if (!columns.has(name))
        columns.set(
          name,
          guard(() => metadataColumn(name)),
        );
      return columns.get(name);
    },
    field: (name) => guard(() => fieldColumn(name)),
  };
}

/** A column of values that is read on first use: a scan names the columns of every block, but its filters often leave no row of it. */
class LazyBytes implements BytesColumn {
  readonly kind = "bytes";
  readonly #read: () => BytesColumn;
  #column: BytesColumn | undefined;

  constructor(read: () => BytesColumn) {
    this.#read = read;
  }

  get bytes(): Uint8Array {
    this.#column ??= this.#read();
    return this.#column.bytes;
  }

  get offsets(): Uint32Array {
    this.#column ??= this.#read();
    return this.#column.offsets;
  }
}

/** The same for a column of codes. */
class LazyCodes implements DictionaryColumn {
  readonly kind = "dictionary";
  readonly #read: () => DictionaryColumn;
  #column: DictionaryColumn | undefined;

  constructor(read: () => DictionaryColumn) {
    this.#read = read;
  }

  get dictionary(): BytesColumn {
    this.#column ??= this.#read();
    return this.#column.dictionary;
  }

  get codes(): DictionaryColumn["codes"] {
    this.#column ??= this.#read();
    return this.#column.codes;
  }
}

/** Spreads the values of a page over the rows: a null is an empty value. */
function nullableColumn(page: DecodedPage, rowCount: number): BytesColumn {
  const { offsets, bytes } = decodeByteArrays(page.body, page.values);
  if (page.values === rowCount) return { offsets, bytes };
  const present = new Uint8Array(rowCount);
  decodeHybrid(page.levels, 1, present, rowCount);
  const spread = new Uint32Array(rowCount + 1);
  let value = 0;
  for (let row = 0; row < rowCount; row++) {
    value += present[row]!;
    spread[row + 1] = offsets[value]!;
  }
  if (value !== page.values) throw internal(`page has levels of ${value} values`);
  return { offsets: spread, bytes };
}

/** The pairs of the map of a block, name by name: those of its name n are `order[starts[n] .. starts[n+1])`, in row order. */
interface MorePairs {
  readonly starts: Uint32Array;
  readonly order: Uint32Array;
  readonly rows: Uint32Array;
  readonly offsets: Uint32Array;
  readonly bytes: Uint8Array;
}

function readPairs(
  page: (column: number) => DecodedPage,
  index: SegmentIndex,
  block: number,
  rowCount: number,
): MorePairs {
  const key = page(index.columnCount - 2);
  const value = page(index.columnCount - 1);
  const more = index.more();
  const rows = pairRows(key, more.levels(block), rowCount);
  const dictionary = more.dictionary(block);
  const codes = new Uint32Array(key.values);
  decodeHybrid(key.body.subarray(1), key.body[0]!, codes, key.values);
  const ids = more.ofBlock(block);
  const places = new Map(Array.from(ids, (id, place) => [id, place]));
  const names = codes.map((code) => {
    const place = places.get(dictionary[code] ?? -1);
    if (place === undefined) throw internal(`page has the code ${code} of ${dictionary.length}`);
    return place;
  });
  return { ...sortByName(names, ids.length), rows, ...decodeByteArrays(value.body, value.values) };
}

/** Counting sort: stable, so the pairs of a name stay in the order of rows. */
function sortByName(names: Uint32Array, nameCount: number): Pick<MorePairs, "starts" | "order"> {
  const starts = new Uint32Array(nameCount + 1);
  for (let pair = 0; pair < names.length; pair++) starts[names[pair]! + 1]!++;
  for (let name = 0; name < nameCount; name++) starts[name + 1]! += starts[name]!;
  const next = starts.slice();
  const order = new Uint32Array(names.length);
  for (let pair = 0; pair < names.length; pair++) order[next[names[pair]!]!++] = pair;
  return { starts, order };
}

/** The row of each pair, from the levels. */
function pairRows(page: DecodedPage, count: number, rowCount: number): Uint32Array {
  const repetition = new Uint8Array(count);
  const definition = new Uint8Array(count);
  const definitionAt = decodeHybrid(page.levels, 1, repetition, count);
  decodeHybrid(page.levels.subarray(definitionAt), 1, definition, count);
  const rows = new Uint32Array(page.values);
  let row = -1;
  let pair = 0;
  for (let i = 0; i < count; i++) {
    if (repetition[i] === 0) row++;
    if (definition[i] === 1) rows[pair++] = row;
  }
  if (row !== rowCount - 1 || pair !== page.values) {
    throw internal(`page has levels of ${row + 1} rows and ${pair} values`);
  }
  return rows;
}

function pairColumn(pairs: MorePairs, place: number, rowCount: number): BytesColumn {
  const { starts, order, offsets: ends } = pairs;
  const from = starts[place]!;
  const to = starts[place + 1]!;
  const offsets = new Uint32Array(rowCount + 1);
  for (let i = from; i < to; i++) {
    const pair = order[i]!;
    offsets[pairs.rows[pair]! + 1] = ends[pair + 1]! - ends[pair]!;
  }
  for (let row = 0; row < rowCount; row++) {
    offsets[row + 1]! += offsets[row]!;
  }
  const total = offsets[rowCount]!;
  const bytes = new Uint8Array(total + paddingBytes).subarray(0, total);
  let at = 0;
  for (let i = from; i < to; i++) {
    const pair = order[i]!;
    const value = pairs.bytes.subarray(ends[pair], ends[pair + 1]);
    bytes.set(value, at);
    at += value.byteLength;
  }
  return { offsets, bytes };
}

/** A page, checked and decompressed. Views with padding behind them. */
interface DecodedPage {
  readonly levels: Uint8Array;
  readonly body: Uint8Array;
  /** Values that are not null. */
  readonly values: number;
}

/** Fetches pages by their places, verifies the checksum of each at every read, and decompresses. */
export class PageReader {
  readonly #reader: RangeReader;
  readonly #index: SegmentIndex;

  constructor(reader: RangeReader, index: SegmentIndex) {
    this.#reader = reader;
    this.#index = index;
  }

  page(
    column: number,
    block: number,
    {
      pages,
      memory,
    }: { readonly pages?: PageSet | undefined; readonly memory?: PageMemory | undefined },
  ): DecodedPage {
    const places = this.#index.pages(column);
    const offset = places.offsets[block]!;
    const levelBytes = places.levelBytes[block]!;
    const storedBytes = places.storedBytes[block]!;
    const rawBytes = places.rawBytes[block]!;
    const stored = this.#checked(
      offset,
      levelBytes + storedBytes,
      places.crcs[block]!,
      pages,
      () => `the page of ${this.#index.columnName(column)}, block ${block}`,
    );
    const body = stored.subarray(levelBytes);
    return {
      levels: stored.subarray(0, levelBytes),
      body: storedBytes === rawBytes ? body : zstd.decompress(body, rawBytes, memory),
      values: places.values[block]!,
    };
  }

  /** The values of a column of codes. They are kept, and are the same object as long as they are. */
  dictionary(
    column: number,
    place: DictionaryPlace,
    { pages }: { readonly pages?: PageSet | undefined },
  ): BytesColumn {
    return dictionaries.get(place, () => {
      const { offset, storedBytes, rawBytes, crc } = place;
      const nameOf = () => `the dictionary of ${this.#index.columnName(column)}`;
      const stored = this.#checked(offset, storedBytes, crc, pages, nameOf);
      return storedBytes === rawBytes ? stored : zstd.decompress(stored, rawBytes);
    });
  }

  /** The ranges of the file that hold the pages of some columns, and dictionaries that are not known yet; near ones are joined. */
  ranges(columns: readonly number[], blocks: BlockRange): ByteRange[] {
    const ranges: ByteRange[] = [];
    for (const column of columns) {
      const { offsets, levelBytes, storedBytes, values } = this.#index.pages(column);
      const wanted = new Set<DictionaryPlace>();
      for (let block = blocks.from; block < blocks.to; block++) {
        // Pages of nothing but nulls are never asked for.
        if (values[block] === 0) continue;
        const from = offsets[block]!;
        const to = from + levelBytes[block]! + storedBytes[block]!;
        ranges.push({ from, to });
        const dictionary = this.#index.dictionaryOf(column, block);
        if (dictionary !== undefined) wanted.add(dictionary);
      }
      for (const dictionary of wanted) {
        // What is kept may be forgotten before it is used; then it can be read only from a file.
        if (this.#reader.kind === "sync" && dictionaries.has(dictionary)) continue;
        ranges.push({ from: dictionary.offset, to: dictionary.offset + dictionary.storedBytes });
      }
    }
    return joinRanges(ranges);
  }

  #checked(
    offset: number,
    length: number,
    crc: number,
    pages: PageSet | undefined,
    nameOf: () => string,
  ): Uint8Array {
    const stored = this.#stored(offset, length, pages);
    const found = crc32(stored);
    if (found === crc) return stored;
    throw internal(wrongChecksum(`${nameOf()}, at byte ${offset}`, crc, found));
  }

  #stored(offset: number, length: number, pages: PageSet | undefined): Uint8Array {
    const held = pages?.find(offset, length);
    if (held !== undefined) return held;
    if (this.#reader.kind === "sync") return this.#reader.read(offset, length);
    throw new Error(`page at ${offset} of ${this.#reader.name} was not fetched before its use`);
  }
}

/** The bytes `from .. to)` of a file. */
export interface ByteRange {
  readonly from: number;
  readonly to: number;
}

/** Ranges held in memory, ascending and apart. */
export function pageSet(ranges: readonly ByteRange[], parts: readonly Uint8Array[]): PageSet {
  return {
    sizeBytes: ranges.reduce((sum, range) => sum + range.to - range.from, 0),
    find(offset, length) {
      const at = firstIndex(0, ranges.length, (i) => ranges[i]!.to > offset);
      const range = ranges[at];
      if (range === undefined || offset < range.from || offset + length > range.to)
        return undefined;
      return parts[at]!.subarray(offset - range.from, offset - range.from + length);
    },
  };
}

/** Reading this much for nothing costs less than another read. */
const maxGapBytes = 16 * 1024;

function joinRanges(ranges: ByteRange[]): ByteRange[] {
  ranges.sort((a, b) => a.from - b.from);
  const joined: { from: number; to: number }[] = [];
  for (const range of ranges) {
    const last = joined.at(-1);
    if (last !== undefined && range.from - last.to <= maxGapBytes) {
      last.to = Math.max(last.to, range.to);
    } else {
      joined.push({ ...range });
    }
  }
  return joined;
}
