import { crc32 } from "node:zlib";
import { dayNs, internal } from "@skald/model";
import { runningSum } from "../../bytes.js";
import { zstd, zstdContentBytes } from "../../zstd.js";
import { readDigests, readMarks } from "../digests.js";
import { readFacts } from "../facts.js";
import { type FilterTable, readFilterTable } from "../filter/filter-table.js";
import { ImageReader, type IndexImage, writeImage } from "../index-image.js";
import { SectionReader, section } from "../index-sections.js";
import { endBytes, type SegmentTrailer, trailerBytes } from "../layout.js";
import { readLevels, readMetadataBytes, readSlices } from "../run-counts.js";
import { wrongChecksum } from "../segment.js";
import { decodeStreams, StreamTable } from "../streams.js";
import type { DictionaryPlace } from "./dictionaries.js";
import { BlockRuns, decodeRuns, RunColumns, runParts } from "./runs.js";

/** Places of the pages of one column, block by block. */
interface ColumnPages {
  /** Offsets of the levels; the body follows them. */
  readonly offsets: Float64Array;
  readonly levelBytes: Float64Array;
  readonly storedBytes: Float64Array;
  readonly rawBytes: Float64Array;
  /** Values that are not null. */
  readonly values: Float64Array;
  readonly crcs: Uint32Array;
  /** Of a column whose pages may have codes, by block: the dictionary of its row group, if it has one. */
  readonly dictionaries: readonly (DictionaryPlace | undefined)[] | undefined;
}

/** Numbers of the columns that have a page per block. Those of metadata follow; the last two are the map's. */
export const timestampColumn = 0;
export const lineColumn = 1;
export const firstMetadataColumn = 2;

/** An index that would be longer when decompressed is refused. */
const maxIndexBytes = 1024 * 1024 * 1024;

/** Parts of an image; those of the streams follow. */
const parts = {
  sections: 0,
  runs: 1,
  streams: 1 + runParts,
} as const;

/** Sections that an image has as columns. */
const decodedSections = [
  section.labelValues,
  section.labelStreams,
  section.labelCodes,
  section.runCounts,
  section.runStreams,
  section.runRows,
  section.runMinTimes,
  section.runSpans,
  section.runLineBytes,
];

/** Checks an index as stored against its trailer and the file, and decodes it. Throws `internal`. */
export function decodeIndex(
  stored: Uint8Array,
  trailer: SegmentTrailer,
  fileBytes: number,
): IndexImage {
  const found = crc32(stored);
  if (found !== trailer.indexCrc) {
    throw internal(
      wrongChecksum(`the index at byte ${trailer.indexOffset}`, trailer.indexCrc, found),
    );
  }
  const rawBytes = zstdContentBytes(stored);
  if (rawBytes === undefined || rawBytes > maxIndexBytes) {
    throw internal("index has no valid size");
  }
  const sections = new SectionReader(zstd.decompress(stored, rawBytes));
  const [, rows, , , , streams, indexOffset, footerBytes] = sections.numbers(section.summary);
  const end = trailer.indexOffset + trailer.indexBytes + trailerBytes + trailer.footerBytes;
  if (
    indexOffset !== trailer.indexOffset ||
    footerBytes !== trailer.footerBytes ||
    end + endBytes !== fileBytes
  ) {
    throw internal("index belongs to a file of another length");
  }
  return writeImage([
    sections.without(decodedSections),
    ...decodeRuns(sections, { streams: streams!, rows: rows! }),
    ...decodeStreams(sections, streams!),
  ]);
}

/** The own index of a segment over its image. Places of pages and tables are decoded when first asked for. */
export class SegmentIndex {
  readonly image: IndexImage;
  readonly tenant: string;
  readonly id: string;
  readonly baseNs: bigint;
  readonly rowCount: number;
  readonly lineBytes: number;
  readonly minTime: number;
  readonly maxTime: number;
  readonly streams: StreamTable;
  readonly runs: BlockRuns;
  readonly blockCount: number;
  /** Blocks of each row group. */
  readonly groupBlocks: Float64Array;
  readonly metadataNames: readonly string[];
  readonly columnCount: number;
  readonly #sections: SectionReader;
  readonly #indexOffset: number;
  readonly #columns = new Map<number, ColumnPages>();
  readonly #names: (readonly string[])[] = [];
  readonly #nameLists = new Map<string, readonly string[]>();

  /** The names that share the map of structured metadata. */
  readonly more = lazy(() => readMoreNames(this.#sections, this.groupBlocks));
  /** The digests of the rows of each stream; undefined when there are none. */
  readonly digests = lazy(() => readDigests(this.#sections, this.streams.count));
  /** A mark of each row, in order: rows with different marks differ. Undefined when there are none. */
  readonly marks = lazy(() => readMarks(this.#sections, this.rowCount));
  /** The counts of the runs by level; undefined when there are none. */
  readonly levels = lazy(() =>
    readLevels(this.#sections, this.blockCount, (block) => this.runs.of(block).count),
  );
  /** The counts of the runs by slices of time; undefined when there are none. */
  readonly slices = lazy(() =>
    readSlices(this.#sections, this.blockCount, (block) => this.runs.of(block)),
  );
  /** What is known of the rows without their lines; undefined when nothing is. */
  readonly facts = lazy(() =>
    readFacts(this.#sections, {
      blockCount: this.blockCount,
      streamCount: this.streams.count,
      rowsOf: (block) => this.runs.of(block).rowStart.at(-1)!,
    }),
  );
  /** Names of the fields of lines that have columns; those are numbered behind all others. */
  readonly fieldNames = lazy(() =>
    this.#sections.has(section.fieldNames) ? this.#sections.texts(section.fieldNames) : [],
  );

  /** Bytes of the structured metadata of each run; undefined when there are none. */
  readonly metadataBytes = lazy(() => readMetadataBytes(this.#sections, this.runs.count));

  constructor(image: IndexImage) {
    const reader = new ImageReader(image);
    const sections = new SectionReader(reader.bytes(parts.sections));
    const [day, rows, lineBytes, minTime, maxTime, streams, indexOffset] = sections.numbers(
      section.summary,
    );
    const [tenant = "", id = ""] = sections.texts(section.identity);
    this.image = image;
    this.tenant = tenant;
    this.id = id;
    this.baseNs = BigInt(day!) * dayNs;
    this.rowCount = rows!;
    this.lineBytes = lineBytes!;
    this.minTime = minTime!;
    this.maxTime = maxTime!;
    this.streams = new StreamTable(reader, parts.streams, sections, streams!);
    this.runs = new BlockRuns(new RunColumns(reader, parts.runs));
    this.blockCount = this.runs.blockCount;
    this.groupBlocks = sections.numbers(section.groupBlocks);
    this.metadataNames = sections.texts(section.metadataNames);
    this.columnCount = firstMetadataColumn + this.metadataNames.length + 2;
    this.#sections = sections;
    this.#indexOffset = indexOffset!;
  }

  /** Ids of the segments that it was merged from; undefined when it was not merged, or its writer did not note them. */
  get replaces(): readonly string[] | undefined {
    if (!this.#sections.has(section.replaces)) return undefined;
    return this.#sections.texts(section.replaces);
  }

  /** The name of a column in the file. */
  columnName(column: number): string {
    if (column === timestampColumn) return "timestamp";
    if (column === lineColumn) return "line";
    const name = this.metadataNames[column - firstMetadataColumn];
    if (name !== undefined) return `metadata.${name}`;
    const field = this.fieldNames()[column - this.columnCount];
    if (field !== undefined) return `fields.${field}`;
    return column === this.columnCount - 2 ? "metadata_more.key" : "metadata_more.value";
  }

  pages(column: number): ColumnPages {
    let pages = this.#columns.get(column);
    if (pages === undefined) {
      pages = this.#readPages(column);
      this.#columns.set(column, pages);
    }
    return pages;
  }

  /** Names of the structured metadata that a block has; blocks with the same names share one list. */
  namesOf(block: number): readonly string[] {
    this.#names[block] ??= this.#shared(this.#readNames(block));
    return this.#names[block];
  }

  /** The table of the filters; undefined when there are none. */
  filters(): FilterTable | undefined {
    return readFilterTable(this.#sections, this.blockCount, this.#indexOffset);
  }

  /** The marks of the rows of a block. */
  marksOf(block: number): Uint32Array | undefined {
    const marks = this.marks();
    if (marks === undefined) return undefined;
    const rowsOf = (one: number) => this.runs.of(one).rowStart.at(-1)!;
    let from = 0;
    for (let before = 0; before < block; before++) from += rowsOf(before);
    return marks.subarray(from, from + rowsOf(block));
  }

  /** Bytes of the structured metadata of the runs of a block. */
  metadataBytesOf(block: number): Float64Array | undefined {
    return this.metadataBytes()?.subarray(...this.runs.placesOf(block));
  }

  /** The dictionary that the pages of a column have codes of in the row group of a block; undefined when they have values. */
  dictionaryOf(column: number | undefined, block: number): DictionaryPlace | undefined {
    return column === undefined ? undefined : this.pages(column).dictionaries?.[block];
  }

  #readNames(block: number): string[] {
    const names = this.metadataNames.filter(
      (_, i) => this.pages(firstMetadataColumn + i).values[block] !== 0,
    );
    const more = this.more();
    for (const id of more.ofBlock(block)) names.push(more.names[id]!);
    return names;
  }

  #shared(names: readonly string[]): readonly string[] {
    const key = JSON.stringify(names);
    const known = this.#nameLists.get(key);
    if (known === undefined) this.#nameLists.set(key, names);
    return known ?? names;
  }

  #readPages(column: number): ColumnPages {
    const isField = column >= this.columnCount;
    const ids = isField ? fieldSections : pageSections;
    const columns = isField ? this.fieldNames().length : this.columnCount;
    const ordinal = isField ? column - this.columnCount : column;
    const numbers = (id: number) => {
      const values = this.#sections.numbers(id, ordinal);
      if (values.length !== this.blockCount) throw internal(`index has ${values.length} pages`);
      return values;
    };
    const headerBytes = numbers(ids.headerBytes);
    const levelBytes = numbers(ids.levelBytes);
    const storedBytes = numbers(ids.storedBytes);
    const chunks = this.#sections.numbers(ids.chunkOffsets);
    const offsets = new Float64Array(this.blockCount);
    let block = 0;
    for (let group = 0; group < this.groupBlocks.length; group++) {
      let at = chunks[group * columns + ordinal]!;
      for (let left = this.groupBlocks[group]!; left > 0; left--) {
        offsets[block] = at + headerBytes[block]!;
        at = offsets[block]! + levelBytes[block]! + storedBytes[block]!;
        block++;
      }
      if (!(at <= this.#indexOffset)) throw internal("index has a page outside the file");
    }
    return {
      offsets,
      levelBytes,
      storedBytes,
      rawBytes: numbers(ids.rawBytes),
      values: numbers(ids.values),
      crcs: this.#sections.words(ids.crcs, ordinal),
      dictionaries: this.#readDictionaries(ids, ordinal, columns, chunks),
    };
  }

  #readDictionaries(
    ids: typeof pageSections | typeof fieldSections,
    ordinal: number,
    columns: number,
    chunks: Float64Array,
  ): ColumnPages["dictionaries"] {
    if (!this.#sections.has(ids.dictionaries, ordinal)) return undefined;
    const numbers = this.#sections.numbers(ids.dictionaries, ordinal);
    const crcs = this.#sections.words(ids.dictionaryCrcs, ordinal);
    const dictionaries: (DictionaryPlace | undefined)[] = [];
    for (let group = 0; group < this.groupBlocks.length; group++) {
      const [valueCount = 0, storedBytes = 0, rawBytes = 0] = numbers.subarray(group * 3);
      // It ends where the first data page begins.
      const offset = chunks[group * columns + ordinal]! - storedBytes;
      const crc = crcs[group]!;
      const place = { offset, storedBytes, rawBytes, valueCount, crc };
      for (let left = this.groupBlocks[group]!; left > 0; left--)
        dictionaries.push(valueCount === 0 ? undefined : place);
    }
    return dictionaries;
  }
}

const pageSections = {
  chunkOffsets: section.chunkOffsets,
  headerBytes: section.pageHeaderBytes,
  levelBytes: section.pageLevelBytes,
  storedBytes: section.pageStoredBytes,
  rawBytes: section.pageRawBytes,
  values: section.pageValues,
  crcs: section.pageCrcs,
  dictionaries: section.pageDictionaries,
  dictionaryCrcs: section.pageDictionaryCrcs,
} as const;

const fieldSections = {
  chunkOffsets: section.fieldOffsets,
  headerBytes: section.fieldHeaderBytes,
  levelBytes: section.fieldLevelBytes,
  storedBytes: section.fieldStoredBytes,
  rawBytes: section.fieldRawBytes,
  values: section.fieldValues,
  crcs: section.fieldCrcs,
  dictionaries: section.fieldDictionaries,
  dictionaryCrcs: section.fieldDictionaryCrcs,
} as const;

/** Makes a value when it is first asked for, and keeps it. */
function lazy<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** `SegmentIndex.replaces` of an image. */
export function replacedBy(image: IndexImage): readonly string[] | undefined {
  return new SegmentIndex(image).replaces;
}

/** The names without a column of their own. */
interface MoreNames {
  readonly names: readonly string[];
  /** The number of a name; undefined when it is none of them. */
  numberOf(name: string): number | undefined;
  /** Numbers of the names that a block has, ascending. */
  ofBlock(block: number): Float64Array;
  /** The dictionary of the row group of a block: the number of the name that each code stands for. */
  dictionary(block: number): readonly number[];
  /** Levels of the key page of a block. */
  levels(block: number): number;
}

function readMoreNames(sections: SectionReader, groupBlocks: Float64Array): MoreNames {
  const names = sections.texts(section.moreNames);
  const counts = sections.numbers(section.moreCounts);
  const ids = sections.numbers(section.moreIds);
  const levels = sections.numbers(section.moreLevels);
  const starts = runningSum(counts);
  const ofBlock = (block: number) => ids.subarray(starts[block], starts[block + 1]);
  let numbers: ReadonlyMap<string, number> | undefined;
  const dictionaries = new Map<number, readonly number[]>();
  return {
    names,
    numberOf(name) {
      numbers ??= new Map(names.map((each, number) => [each, number]));
      return numbers.get(name);
    },
    ofBlock,
    dictionary(block) {
      let from = 0;
      let group = 0;
      while (block >= from + groupBlocks[group]!) from += groupBlocks[group++]!;
      const known = dictionaries.get(group);
      if (known !== undefined) return known;
      // Codes were given in order of first use, and each block uses its names in ascending order.
      const seen = new Set<number>();
      for (let b = from; b < from + groupBlocks[group]!; b++) {
        for (const id of ofBlock(b)) seen.add(id);
      }
      const dictionary = [...seen];
      dictionaries.set(group, dictionary);
      return dictionary;
    },
    levels: (block) => levels[block]!,
  };
}
