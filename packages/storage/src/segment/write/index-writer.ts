import { dayNs, type RunTable } from "@skald/model";
import type { DictionaryPlace } from "../../parquet/column-chunk.js";
import type { ChunkSummary } from "../../parquet/footer.js";
import { DigestWriter, MarkWriter } from "../digests.js";
import { RowSetWriter } from "../facts.js";
import { writeFilterTable } from "../filter/filter-table.js";
import { SectionWriter, section } from "../index-sections.js";
import { type SegmentLayout, type SortedBlock, writeStreams } from "../layout.js";
import { hashBlockRows } from "../row-hash.js";
import { LevelWriter, MetadataBytesWriter, SliceWriter } from "../run-counts.js";
import type { FieldWriter } from "./fields.js";

/** What the index says about the file as a whole. */
interface IndexSummary {
  readonly id: string;
  readonly tenant: string;
  readonly rowCount: number;
  readonly lineBytes: number;
  /** ns since the base, inclusive */
  readonly minTime: number;
  readonly maxTime: number;
  readonly indexOffset: number;
  readonly footerBytes: number;
  /** Ids of the segments that it was merged from. */
  readonly replaces?: readonly string[] | undefined;
}

/** The filters as they stand in the file, from `offset` on. */
export type WrittenFilters = Parameters<typeof writeFilterTable>[2] & { readonly offset: number };

/** Sections of the runs, a number for each run (`runCounts`: for each block). */
const runSections = [
  "runCounts",
  "runStreams",
  "runRows",
  "runMinTimes",
  "runSpans",
  "runLineBytes",
] as const;

/** The facts about the pages of a column that have a section each. */
const pageFacts = ["headerBytes", "levelBytes", "storedBytes", "rawBytes", "valueCount"] as const;

const pageSections = {
  headerBytes: section.pageHeaderBytes,
  levelBytes: section.pageLevelBytes,
  storedBytes: section.pageStoredBytes,
  rawBytes: section.pageRawBytes,
  valueCount: section.pageValues,
  crc: section.pageCrcs,
  dictionaries: section.pageDictionaries,
  dictionaryCrcs: section.pageDictionaryCrcs,
} as const;

/** The same for the columns of fields. */
const fieldSections = {
  headerBytes: section.fieldHeaderBytes,
  levelBytes: section.fieldLevelBytes,
  storedBytes: section.fieldStoredBytes,
  rawBytes: section.fieldRawBytes,
  valueCount: section.fieldValues,
  crc: section.fieldCrcs,
  dictionaries: section.fieldDictionaries,
  dictionaryCrcs: section.fieldDictionaryCrcs,
} as const;

/** Collects the own index of a segment while its blocks are written. */
export class SegmentIndexWriter {
  readonly #layout: SegmentLayout;
  readonly #runs = {
    runCounts: [] as number[],
    runStreams: [] as number[],
    runRows: [] as number[],
    runMinTimes: [] as number[],
    runSpans: [] as number[],
    runLineBytes: [] as number[],
  };
  readonly #moreCounts: number[] = [];
  readonly #moreIds: number[] = [];
  readonly #groups: (readonly ChunkSummary[])[] = [];
  readonly #fieldGroups: (readonly ChunkSummary[])[] = [];
  readonly #digests: DigestWriter | undefined;
  readonly #marks = new MarkWriter();
  readonly #levels = new LevelWriter();
  readonly #slices = new SliceWriter();
  readonly #rowSets: RowSetWriter;
  readonly #metadata: MetadataBytesWriter;

  constructor(
    layout: SegmentLayout,
    options: { readonly hasDigests: boolean; readonly texts: readonly string[] },
  ) {
    this.#layout = layout;
    this.#metadata = new MetadataBytesWriter(layout.metadataMore);
    this.#digests = options.hasDigests ? new DigestWriter() : undefined;
    this.#rowSets = new RowSetWriter(options.texts);
  }

  /** Adds what headers say about a block. Comes before its pages are encoded, which use the bytes in front of the lines. */
  summarize(block: SortedBlock): void {
    this.#hash(block);
    this.#levels.add(block);
    this.#slices.add(block);
    this.#rowSets.add(block);
    this.#metadata.add(block);
  }

  #hash({ more, ...block }: SortedBlock): void {
    const isMarked = this.#marks.wants(block.rowCount);
    if (!isMarked && this.#digests === undefined) return;
    const names = this.#layout.metadataMore;
    const hashes = hashBlockRows({ ...block, more: { rows: more, names } });
    if (isMarked) this.#marks.add(hashes.low);
    this.#digests?.add(block, hashes);
  }

  addBlock(runs: RunTable, moreIds: readonly number[]): void {
    const to = this.#runs;
    to.runCounts.push(runs.count);
    for (let r = 0; r < runs.count; r++) {
      const minTime = runs.minTime[r]!;
      to.runStreams.push(runs.stream[r]!);
      to.runRows.push(runs.rowStart[r + 1]! - runs.rowStart[r]!);
      to.runMinTimes.push(minTime);
      to.runSpans.push(runs.maxTime[r]! - minTime);
      to.runLineBytes.push(runs.lineBytes[r]!);
    }
    this.#moreCounts.push(moreIds.length);
    for (const id of moreIds) this.#moreIds.push(id);
  }

  /** Adds the chunks of a row group that have a page per block. */
  addGroup(chunks: readonly ChunkSummary[], fields: readonly ChunkSummary[]): void {
    this.#groups.push(chunks);
    this.#fieldGroups.push(fields);
  }

  finish(summary: IndexSummary, filters: WrittenFilters, fields: FieldWriter): Uint8Array {
    const { baseNs, streamCount, labels, metadataMore } = this.#layout;
    const { rowCount, lineBytes, minTime, maxTime, indexOffset, footerBytes } = summary;
    const sections = new SectionWriter();
    sections.texts(section.identity, [summary.tenant, summary.id]);
    sections.numbers(section.summary, [
      ...[Number(baseNs / dayNs), rowCount, lineBytes, minTime, maxTime],
      ...[streamCount, indexOffset, footerBytes],
    ]);
    writeStreams(sections, labels);
    for (const name of runSections) sections.numbers(section[name], this.#runs[name]);
    this.#writePages(sections);
    sections.texts(section.moreNames, metadataMore);
    sections.numbers(section.moreCounts, this.#moreCounts);
    sections.numbers(section.moreIds, this.#moreIds);
    const keys = this.#groups.flatMap((chunks) => chunks.at(-2)?.pages ?? []);
    const levels = keys.map((page) => page.valueCount + page.nullCount);
    sections.numbers(section.moreLevels, levels);
    writeFilterTable(sections, filters.offset, filters);
    this.#digests?.finish(sections, streamCount);
    this.#marks.finish(sections);
    this.#levels.finish(sections);
    this.#slices.finish(sections);
    this.#rowSets.finish(sections, lineBytes);
    this.#metadata.finish(sections);
    fields.finish(sections);
    if (fields.names.length > 0) {
      sections.numbers(section.fieldOffsets, offsetsOf(this.#fieldGroups));
      writePages(sections, this.#fieldGroups, fieldSections);
      writeDictionaries(sections, this.#fieldGroups, fieldSections);
    }
    if (summary.replaces !== undefined) sections.texts(section.replaces, summary.replaces);
    return sections.finish();
  }

  #writePages(sections: SectionWriter): void {
    const groups = this.#groups;
    sections.texts(section.metadataNames, this.#layout.metadataColumns);
    const blocks = groups.map((group) => group[0]?.pages.length ?? 0);
    sections.numbers(section.groupBlocks, blocks);
    sections.numbers(section.chunkOffsets, offsetsOf(groups));
    writePages(sections, groups, pageSections);
    // Section 24 has the dictionary of the map.
    const columns = groups.map((group) => group.slice(0, -2));
    writeDictionaries(sections, columns, pageSections);
  }
}

type Groups = readonly (readonly ChunkSummary[])[];
type PageSections = typeof pageSections | typeof fieldSections;

/** Where the first data page of each chunk begins. */
function offsetsOf(groups: Groups): number[] {
  return groups.flat().map((chunk) => chunk.offset + chunk.dictionaryBytes);
}

function writePages(sections: SectionWriter, groups: Groups, ids: PageSections): void {
  for (let column = 0; column < (groups[0]?.length ?? 0); column++) {
    const pages = groups.flatMap((group) => group[column]?.pages ?? []);
    for (const fact of pageFacts) {
      const values = pages.map((page) => page[fact]);
      sections.numbers(ids[fact], values, column);
    }
    const crcs = pages.map((page) => page.crc);
    sections.words(ids.crc, crcs, column);
  }
}

/** Where the dictionaries of columns are: they end where the first data page of their chunk begins. */
function writeDictionaries(sections: SectionWriter, groups: Groups, ids: PageSections): void {
  for (let column = 0; column < (groups[0]?.length ?? 0); column++) {
    const all = groups.map((group) => group[column]?.dictionary ?? noDictionary);
    if (all.every((one) => one === noDictionary)) continue;
    const numbers = all.flatMap((one) => [one.valueCount, one.storedBytes, one.rawBytes]);
    sections.numbers(ids.dictionaries, numbers, column);
    const crcs = all.map(({ crc }) => crc);
    sections.words(ids.dictionaryCrcs, crcs, column);
  }
}

const noDictionary: DictionaryPlace = { valueCount: 0, storedBytes: 0, rawBytes: 0, crc: 0 };
