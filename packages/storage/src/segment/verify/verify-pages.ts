import { crc32 } from "node:zlib";
import { internal, type Labels, labelValue } from "@skald/model";
import { BloomFilter } from "../../parquet/bloom-filter.js";
import { compressDictionaryBytes } from "../../parquet/column-chunk.js";
import { decodeByteArrays } from "../../parquet/delta.js";
import {
  type Bounds,
  type ChunkSummary,
  encodeFooter,
  encodePageIndexes,
  maxPageHeaderBytes,
  type PageHeader,
  type Place,
  type ReadChunk,
  type ReadFooter,
  type RowGroupSummary,
  readPageHeader,
} from "../../parquet/footer.js";
import { codec, encoding, type Leaf, physicalType } from "../../parquet/format.js";
import { decodeHybrid } from "../../parquet/hybrid.js";
import { areSorted, ValueBounds } from "../../parquet/statistics.js";
import { zstd } from "../../zstd.js";
import { withPadding } from "../index-sections.js";
import type { SegmentTrailer } from "../layout.js";
import type { SyncRangeReader } from "../range-reader.js";
import type { DictionaryPlace } from "../read/dictionaries.js";
import {
  firstMetadataColumn,
  lineColumn,
  type SegmentIndex,
  timestampColumn,
} from "../read/index-reader.js";
import type { BlockRange } from "../segment.js";
import { sortingColumns, timeBounds } from "../write/row-group.js";
import { createdBy, createdByFirst, indexPlace } from "../write/writer.js";

/** A part of a file that is not as it was written. */
export interface Damage {
  /** What it is in: `footer`, `filter at 123`, `column line, page of block 4`. */
  readonly part: string;
  /** Place in the file, where it is known. */
  readonly offset?: number;
  readonly message: string;
}

interface VerifiedFile extends CheckedFile {
  readonly trailer: SegmentTrailer;
  readonly footer: ReadFooter;
  readonly footerBytes: Uint8Array;
  /** Called for each damage. */
  readonly onDamage: (damage: Damage) => void;
}

/**
 * Walks over all pages as a reader of Parquet does, compares their headers with the own index and checks their checksums;
 * then makes page indexes and footer anew from the pages, and compares them. Yields the bytes that each step read.
 */
export function* verifyPages(file: VerifiedFile): Generator<number, void> {
  const { footer, index, onDamage } = file;
  const isFirst = footer.createdBy === createdByFirst;
  if (footer.rowGroups.length !== index.groupBlocks.length) {
    onDamage({ part: "footer", message: `it has ${footer.rowGroups.length} row groups` });
    return;
  }
  const walk = new PageWalk(file);
  const groups: RowGroupSummary[] = [];
  let block = 0;
  for (const [g, { chunks }] of footer.rowGroups.entries()) {
    const summaries: ChunkSummary[] = [];
    const blocks = { from: block, to: block + index.groupBlocks[g]! };
    for (const [c, chunk] of chunks.entries()) {
      const summary = yield* walk.chunk(footer.leaves[c]!, chunk, blocks);
      if (summary !== undefined) summaries.push(summary);
    }
    yield walk.blooms();
    const sortedBy = isFirst ? [] : sortedByOf(footer, index, blocks);
    groups.push({ rowCount: rowsOf(index, blocks), chunks: summaries, sortedBy });
    block = blocks.to;
  }
  // The headers of damaged pages would make everything behind them look damaged.
  if (!walk.isDamaged) compareMetadata(file, groups, walk.end);
}

class PageWalk {
  /** Where the chunk or filter before ended. */
  end = 4;
  isDamaged = false;
  /** The filters of the row group, as its values make them. */
  readonly #blooms: { readonly part: string; readonly place: Place; readonly bytes: Uint8Array }[] =
    [];
  readonly #file: VerifiedFile;

  constructor(file: VerifiedFile) {
    this.#file = file;
  }

  /** The chunk as the footer must describe it; undefined when it is damaged. */
  *chunk(
    leaf: Leaf,
    read: ReadChunk,
    blocks: BlockRange,
  ): Generator<number, ChunkSummary | undefined> {
    const { offset, storedBytes, rawBytes } = read;
    if (offset !== this.end) {
      this.#tell("footer", offset, `it has column ${nameOf(leaf)} at a wrong place`);
      return undefined;
    }
    this.end += storedBytes;
    if (!(this.end <= this.#file.trailer.indexOffset)) {
      this.#tell("footer", offset, `it has column ${nameOf(leaf)} outside the pages`);
      return undefined;
    }
    const bloom = read.bloom && new BloomFilter();
    const chunk = new ChunkWalk(this.#file, leaf, blocks, bloom);
    for (let at = offset; at < this.end; ) {
      let page: PageHeader;
      try {
        page = chunk.page(at, Math.min(this.end - at, maxPageHeaderBytes), this.end);
      } catch (error) {
        this.#tell(chunk.part, at, (error as Error).message);
        yield this.end - at;
        return undefined;
      }
      const bytes = page.headerBytes + page.storedBytes;
      at += bytes;
      yield bytes;
    }
    const summary = chunk.finish(offset, storedBytes);
    if (summary.rawBytes !== rawBytes) {
      this.#tell("footer", offset, `column ${nameOf(leaf)} has ${summary.rawBytes} raw bytes`);
      return undefined;
    }
    if (read.bloom !== undefined) {
      const part = `column ${nameOf(leaf)}, bloom filter`;
      this.#blooms.push({ part, place: read.bloom, bytes: bloom?.seal() ?? noBytes });
    }
    return { ...summary, bloom: read.bloom };
  }

  /** Checks the filters behind the chunks of a row group; answers their size. */
  blooms(): number {
    const from = this.end;
    for (const { part, place, bytes } of this.#blooms) {
      const { offset, length } = place;
      const isAsMade =
        offset === this.end &&
        length === bytes.length &&
        Buffer.compare(this.#file.reader.read(offset, length), bytes) === 0;
      if (!isAsMade) this.#tell(part, this.end, "it is not that of the values");
      this.end += bytes.length;
    }
    this.#blooms.length = 0;
    return this.end - from;
  }

  #tell(part: string, offset: number, message: string): void {
    this.isDamaged = true;
    this.#file.onDamage({ part, offset, message });
  }
}

/** Compares page indexes and footer with what they must be, byte by byte. */
function compareMetadata(file: VerifiedFile, rowGroups: RowGroupSummary[], at: number): void {
  const { reader, index, trailer, footer, footerBytes, onDamage } = file;
  if (footer.createdBy !== createdBy && footer.createdBy !== createdByFirst) {
    onDamage({ part: "footer", message: `it was written by the unknown "${footer.createdBy}"` });
    return;
  }
  const { bytes, places } = encodePageIndexes(rowGroups, at);
  const filters = index.filters()?.groups[0]?.offset ?? trailer.indexOffset;
  const isWhole = at + bytes.length <= filters;
  if (!isWhole || Buffer.compare(reader.read(at, bytes.length), bytes) !== 0) {
    onDamage({ part: "page indexes", offset: at, message: "they are not those of the pages" });
  }
  const { indexOffset, indexBytes, indexCrc } = trailer;
  const wanted = encodeFooter(
    {
      schema: footer.schema,
      rowCount: index.rowCount,
      rowGroups,
      keyValues: [
        ["skald.version", "1"],
        ["skald.index", indexPlace(indexOffset, indexBytes, indexCrc)],
      ],
      createdBy: footer.createdBy,
    },
    places,
  );
  if (Buffer.compare(wanted, footerBytes) !== 0 || !hasColumnsOf(footer, index)) {
    onDamage({ part: "footer", message: "it is not that of the pages and the index" });
  }
}

function hasColumnsOf({ leaves }: ReadFooter, index: SegmentIndex): boolean {
  const columns = leaves.flatMap((leaf) => columnOf(leaf, index) ?? []);
  const names = new Set(index.streams.names);
  return (
    columns.length === index.columnCount + index.fieldNames().length &&
    leaves.every((leaf) => !isLabel(leaf) || names.has(leaf.path[1] as string))
  );
}

/** What pages are read from and held against. */
interface CheckedFile {
  readonly reader: SyncRangeReader;
  readonly index: SegmentIndex;
  readonly footer: ReadFooter;
}

/** The columns that the rows of some blocks ascend by, as the footer must name them. */
function sortedByOf({ leaves }: ReadFooter, { runs, streams }: SegmentIndex, blocks: BlockRange) {
  const names = leaves.flatMap((leaf) => (isLabel(leaf) ? [leaf.path[1] as string] : []));
  if (leaves.some(({ path }) => path[0] === "labels_more")) return [];
  const labels: Labels[] = [];
  for (let block = blocks.from; block < blocks.to; block++)
    for (const stream of runs.of(block).stream) labels.push(streams.labels(stream));
  const ranks = names.map((name) => {
    // No label has an empty value.
    const values = labels.map((one) => labelValue(one, name));
    const sorted = [...new Set(values)].filter((value) => value !== "");
    sorted.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    const ranks = new Map(sorted.map((value, rank) => [value, rank]));
    return values.map((value) => ranks.get(value) ?? ranks.size);
  });
  return areSorted(ranks, labels.length) ? sortingColumns(names.length) : [];
}

/** Rows of some blocks. */
function rowsOf({ runs }: SegmentIndex, { from, to }: BlockRange): number {
  let rows = 0;
  for (let block = from; block < to; block++) rows += runs.of(block).rowStart.at(-1)!;
  return rows;
}

/** Checks the pages of one column of one row group, and says how the footer must describe them. */
class ChunkWalk {
  readonly #file: CheckedFile;
  readonly #leaf: Leaf;
  readonly #blocks: BlockRange;
  /** Number of the column in the own index; undefined for labels. */
  readonly #column: number | undefined;
  /** How its values are written. */
  readonly #encoding: number;
  /** Its dictionary, where the own index knows one. */
  readonly #place: DictionaryPlace | undefined;
  readonly #pages: PageHeader[] = [];
  #dictionary: PageHeader | undefined;
  #bounds: ChunkSummary["bounds"];
  /** Of columns with a page per block that have bounds. */
  readonly #values: ValueBounds | undefined;
  /** Gets the values, where the footer names a filter. */
  readonly #bloom: BloomFilter | undefined;

  constructor(file: CheckedFile, leaf: Leaf, blocks: BlockRange, bloom: BloomFilter | undefined) {
    this.#file = file;
    this.#leaf = leaf;
    this.#blocks = blocks;
    this.#column = columnOf(leaf, file.index);
    this.#place = file.index.dictionaryOf(this.#column, blocks.from);
    this.#encoding = this.#place === undefined ? encodingOf(leaf) : encoding.rleDictionary;
    const isBound = leaf.path[0] === "metadata" || leaf.path[0] === "fields";
    this.#bloom = bloom;
    if (isBound && file.footer.createdBy !== createdByFirst) this.#values = new ValueBounds();
  }

  /** The page that comes next. */
  get part(): string {
    const isDictionary = this.#isCoded && this.#dictionary === undefined;
    const page = isDictionary ? "dictionary" : `page of block ${this.#block}`;
    return `column ${nameOf(this.#leaf)}, ${page}`;
  }

  /** Whether its pages have codes. */
  get #isCoded(): boolean {
    return this.#encoding === encoding.rleDictionary;
  }

  get #block(): number {
    return this.#blocks.from + this.#pages.length;
  }

  /** Checks the page at a place. Throws `internal`. */
  page(at: number, headBytes: number, end: number): PageHeader {
    const { reader } = this.#file;
    const header = readPageHeader(reader.read(at, headBytes));
    const bodyAt = at + header.headerBytes;
    if (header.storedBytes < 0 || bodyAt + header.storedBytes > end) {
      throw internal("page header does not fit the chunk");
    }
    const isDictionary = this.#isCoded && this.#dictionary === undefined;
    if ((header.kind === "dictionary") !== isDictionary) throw internal("page is of another kind");
    if (isDictionary) this.#checkDictionary(header, bodyAt);
    else this.#checkData(header, bodyAt);
    const stored = reader.read(bodyAt, header.storedBytes);
    if (crc32(stored) !== header.crc) throw internal("page does not match its checksum");
    if (isDictionary) this.#takeDictionary(header, stored);
    else this.#takeData(header, stored);
    return header;
  }

  /** Ends the chunk: its description as the footer must have it. */
  finish(offset: number, storedBytes: number): ChunkSummary {
    const dictionary = this.#dictionary;
    const dictionaryBytes =
      dictionary === undefined ? 0 : dictionary.headerBytes + dictionary.storedBytes;
    const all = dictionary === undefined ? this.#pages : [dictionary, ...this.#pages];
    const isCompressed =
      this.#pages.some(({ compressed }) => compressed) ||
      (dictionary?.rawBytes ?? 0) > compressDictionaryBytes;
    const ofValues = this.#values?.bounds ?? this.#bounds;
    const bounds = this.#column === timestampColumn ? this.#timeBounds() : ofValues;
    return {
      ...{ offset, storedBytes, dictionaryBytes },
      rawBytes: all.reduce((sum, page) => sum + page.headerBytes + page.rawBytes, 0),
      codec: isCompressed ? codec.zstd : codec.uncompressed,
      dataEncoding: this.#encoding,
      pages: this.#pages.map((page) => ({
        ...page,
        storedBytes: page.storedBytes - page.levelBytes,
        rawBytes: page.rawBytes - page.levelBytes,
        valueCount: page.valueCount - page.nullCount,
      })),
      indexed: this.#column === timestampColumn || isLabel(this.#leaf),
      ...(bounds === undefined ? {} : { bounds }),
    };
  }

  #checkDictionary(header: PageHeader, bodyAt: number): void {
    const { encoding: own, compressed: isSorted, storedBytes, rawBytes, valueCount, crc } = header;
    if (own !== encoding.plain || isSorted !== isLabel(this.#leaf))
      throw internal("page header is not that of its column");
    const place = this.#place;
    if (place === undefined) return;
    const isAsIndexed =
      bodyAt === place.offset &&
      storedBytes === place.storedBytes &&
      rawBytes === place.rawBytes &&
      valueCount === place.valueCount &&
      crc === place.crc;
    if (!isAsIndexed) throw internal("page header is not what the index says");
  }

  #checkData(header: PageHeader, bodyAt: number): void {
    const { index } = this.#file;
    const { levelBytes, storedBytes, rawBytes, valueCount, nullCount, rowCount } = header;
    const isCompressed = storedBytes !== rawBytes;
    if (header.encoding !== this.#encoding || header.compressed !== isCompressed)
      throw internal("page header is not that of its column");
    if (this.#block >= this.#blocks.to) throw internal("page is one too many");
    if (isLabel(this.#leaf)) {
      if (rowCount !== rowsOf(index, this.#blocks) || valueCount !== rowCount)
        throw internal("page header has other rows");
      return;
    }
    if (this.#column === undefined) return;
    const { runs } = index;
    const rows = runs.of(this.#block).rowStart.at(-1)!;
    const pages = index.pages(this.#column);
    const block = this.#block;
    const isAsIndexed =
      rowCount === rows &&
      bodyAt === pages.offsets[block] &&
      levelBytes === pages.levelBytes[block] &&
      (header.repetitionBytes === 0 || this.#leaf.path.length === 3) &&
      storedBytes === levelBytes + pages.storedBytes[block]! &&
      rawBytes === levelBytes + pages.rawBytes[block]! &&
      valueCount - nullCount === pages.values[block] &&
      header.crc === pages.crcs[block];
    if (!isAsIndexed) throw internal("page header is not what the index says");
  }

  #takeDictionary(header: PageHeader, stored: Uint8Array): void {
    // A dictionary cannot say whether it is compressed; the writer compresses large ones, and all of a compressed chunk.
    const isCompressed = header.storedBytes !== header.rawBytes;
    const raw = isCompressed ? zstd.decompress(stored, header.rawBytes) : stored;
    const values = plainValues(raw);
    if (values.length !== header.valueCount) throw internal("dictionary has other values");
    const min = values[0];
    const max = values.at(-1);
    if (isLabel(this.#leaf) && min !== undefined && max !== undefined)
      this.#bounds = { min, max, pages: [{ min, max }] };
    if (this.#place !== undefined)
      for (const value of values) this.#values?.add(value, [value.length], 1);
    this.#dictionary = header;
  }

  #takeData(header: PageHeader, stored: Uint8Array): void {
    // Pages of the own index are decoded with their block.
    if (this.#column === undefined) this.#decode(header, stored);
    else if (this.#values !== undefined && !this.#isCoded)
      this.#addValues(this.#values, header, stored);
    this.#pages.push(header);
  }

  #decode(header: PageHeader, stored: Uint8Array): void {
    const { levelBytes, repetitionBytes, rawBytes, compressed, valueCount, nullCount } = header;
    const levels = new Uint8Array(valueCount);
    const isMap = !isLabel(this.#leaf);
    const from = isMap ? decodeHybrid(stored, 1, levels, valueCount) : 0;
    const to = from + decodeHybrid(stored.subarray(from), 1, levels, valueCount);
    const present = levels.reduce((sum, level) => sum + level, 0);
    if (from !== repetitionBytes || to !== levelBytes || present !== valueCount - nullCount)
      throw internal("page has other levels than its header says");
    const rest = withPadding(stored.subarray(levelBytes));
    const body = compressed ? zstd.decompress(rest, rawBytes - levelBytes) : rest;
    if (!this.#isCoded) {
      decodeByteArrays(body, present);
      return;
    }
    const codes = new Uint32Array(present);
    decodeHybrid(body.subarray(1), body[0] ?? 0, codes, present);
    const limit = this.#dictionary?.valueCount ?? 0;
    if (codes.some((code) => code >= limit)) throw internal("page has a code of no value");
  }

  #addValues(values: ValueBounds, header: PageHeader, stored: Uint8Array): void {
    const { levelBytes, rawBytes, compressed, valueCount, nullCount } = header;
    const rest = withPadding(stored.subarray(levelBytes));
    const body = compressed ? zstd.decompress(rest, rawBytes - levelBytes) : rest;
    const count = valueCount - nullCount;
    const { bytes, offsets } = decodeByteArrays(body, count);
    const lengths = Array.from({ length: count }, (_, i) => offsets[i + 1]! - offsets[i]!);
    values.add(bytes.subarray(offsets[0]), lengths, count);
    this.#bloom?.add({ bytes, offsets }, count);
  }

  #timeBounds(): Bounds {
    const { runs, baseNs } = this.#file.index;
    const times: { min: number; max: number }[] = [];
    for (let block = this.#blocks.from; block < this.#blocks.to; block++) {
      const { minTime, maxTime } = runs.of(block);
      const min = minTime.reduce((a, b) => Math.min(a, b));
      times.push({ min, max: maxTime.reduce((a, b) => Math.max(a, b)) });
    }
    return timeBounds(baseNs, times);
  }
}

const noBytes = new Uint8Array(0);

function plainValues(bytes: Uint8Array): Uint8Array[] {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const values: Uint8Array[] = [];
  for (let at = 0; at < buffer.length; ) {
    if (at + 4 > buffer.length) throw internal("dictionary is cut short");
    const end = at + 4 + buffer.readUInt32LE(at);
    if (end > buffer.length) throw internal("dictionary is cut short");
    values.push(buffer.subarray(at + 4, end));
    at = end;
  }
  return values;
}

/** The number of a column of Parquet in the own index; undefined for labels. Throws `internal` where that lacks it. */
function columnOf({ path }: Leaf, index: SegmentIndex): number | undefined {
  const [first, second, third] = path;
  if (first === "timestamp") return timestampColumn;
  if (first === "line") return lineColumn;
  if (first === "metadata_more") return index.columnCount - (third === "key" ? 2 : 1);
  if (first === "fields") {
    const field = index.fieldNames().indexOf(second as string);
    if (field < 0) throw internal(`footer has a field ${second} that the index lacks`);
    return index.columnCount + field;
  }
  if (first !== "metadata") return undefined;
  const column = index.metadataNames.indexOf(second as string);
  if (column < 0) throw internal(`footer has a column ${second} that the index lacks`);
  return firstMetadataColumn + column;
}

/** The name of a column in the text about damage. */
function nameOf({ path }: Leaf): string {
  return path.filter((part) => part !== "key_value").join(".");
}

/** Whether a column is that of a label. */
function isLabel({ path }: Leaf): boolean {
  return path[0] === "labels";
}

/** How the values of a column are written that has no dictionary in the own index. */
function encodingOf(leaf: Leaf): number {
  if (leaf.type === physicalType.int64) return encoding.deltaBinaryPacked;
  const isKey = leaf.path.length === 3 && leaf.path[2] === "key";
  return isLabel(leaf) || isKey ? encoding.rleDictionary : encoding.deltaLengthByteArray;
}
