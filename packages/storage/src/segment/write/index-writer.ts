import { dayNs, type RunTable } from "@skald/model";
import type { ChunkSummary } from "../../parquet/footer.js";
import { DigestWriter, MarkWriter } from "../digests.js";
import { writeFilterTable } from "../filter/filter-table.js";
import { SectionWriter, section } from "../index-sections.js";
import { type SegmentLayout, type SortedBlock, writeStreams } from "../layout.js";
import { hashBlockRows } from "../row-hash.js";
import { LevelWriter, SliceWriter } from "../run-counts.js";

/** What the index says of the file as a whole. */
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
  readonly replaces?: readonly string[];
}

/** The filters as they stand in the file, from `offset` on. */
export type WrittenFilters = Parameters<typeof writeFilterTable>[2] & { readonly offset: number };

/** Collects the own index of a segment while its blocks are written. */
export class SegmentIndexWriter {
  readonly #layout: SegmentLayout;
  readonly #runs = {
    counts: [] as number[],
    streams: [] as number[],
    rows: [] as number[],
    minTimes: [] as number[],
    spans: [] as number[],
    lineBytes: [] as number[],
  };
  readonly #more = { counts: [] as number[], ids: [] as number[] };
  readonly #groups: (readonly ChunkSummary[])[] = [];

  readonly #digests: DigestWriter | undefined;
  readonly #marks = new MarkWriter();
  readonly #levels = new LevelWriter();
  readonly #slices = new SliceWriter();

  constructor(layout: SegmentLayout, hasDigests: boolean) {
    this.#layout = layout;
    this.#digests = hasDigests ? new DigestWriter() : undefined;
  }

  /** Adds what headers say of a block before its pages are encoded, which use the bytes in front of the lines. */
  summarize(block: SortedBlock): void {
    this.#hash(block);
    this.#levels.add(block);
    this.#slices.add(block);
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
    to.counts.push(runs.count);
    for (let r = 0; r < runs.count; r++) {
      const minTime = runs.minTime[r]!;
      to.streams.push(runs.stream[r]!);
      to.rows.push(runs.rowStart[r + 1]! - runs.rowStart[r]!);
      to.minTimes.push(minTime);
      to.spans.push(runs.maxTime[r]! - minTime);
      to.lineBytes.push(runs.lineBytes[r]!);
    }
    this.#more.counts.push(moreIds.length);
    for (const id of moreIds) this.#more.ids.push(id);
  }

  /** Adds the chunks of a row group that have a page per block. */
  addGroup(chunks: readonly ChunkSummary[]): void {
    this.#groups.push(chunks);
  }

  finish(summary: IndexSummary, filters: WrittenFilters): Uint8Array {
    const layout = this.#layout;
    const sections = new SectionWriter();
    sections.texts(section.identity, [summary.tenant, summary.id]);
    sections.numbers(
      section.summary,
      Float64Array.of(
        Number(layout.baseNs / dayNs),
        summary.rowCount,
        summary.lineBytes,
        summary.minTime,
        summary.maxTime,
        layout.streamCount,
        summary.indexOffset,
        summary.footerBytes,
      ),
    );
    writeStreams(sections, layout.labels);
    const runs = this.#runs;
    sections.numbers(section.runCounts, Float64Array.from(runs.counts));
    sections.numbers(section.runStreams, Float64Array.from(runs.streams));
    sections.numbers(section.runRows, Float64Array.from(runs.rows));
    sections.numbers(section.runMinTimes, Float64Array.from(runs.minTimes));
    sections.numbers(section.runSpans, Float64Array.from(runs.spans));
    sections.numbers(section.runLineBytes, Float64Array.from(runs.lineBytes));
    this.#writePages(sections);
    sections.texts(section.moreNames, layout.metadataMore);
    sections.numbers(section.moreCounts, Float64Array.from(this.#more.counts));
    sections.numbers(section.moreIds, Float64Array.from(this.#more.ids));
    const keys = this.#groups.flatMap((chunks) => chunks.at(-2)?.pages ?? []);
    sections.numbers(
      section.moreLevels,
      Float64Array.from(keys, (page) => page.valueCount + page.nullCount),
    );
    writeFilterTable(sections, filters.offset, filters);
    this.#digests?.finish(sections, layout.streamCount);
    this.#marks.finish(sections);
    this.#levels.finish(sections);
    this.#slices.finish(sections);
    if (summary.replaces !== undefined) sections.texts(section.replaces, summary.replaces);
    return sections.finish();
  }

  #writePages(sections: SectionWriter): void {
    const groups = this.#groups;
    const pagesOf = (column: number) => groups.flatMap((chunks) => chunks[column]?.pages ?? []);
    sections.texts(section.metadataNames, this.#layout.metadataColumns);
    sections.numbers(
      section.groupBlocks,
      Float64Array.from(groups, (chunks) => chunks[0]?.pages.length ?? 0),
    );
    sections.numbers(
      section.chunkOffsets,
      Float64Array.from(
        groups.flatMap((chunks) => chunks.map((chunk) => chunk.offset + chunk.dictionaryBytes)),
      ),
    );
    const columnCount = groups[0]?.length ?? 0;
    for (let column = 0; column < columnCount; column++) {
      const pages = pagesOf(column);
      const put = (id: number, of: (page: (typeof pages)[number]) => number) =>
        sections.numbers(id, Float64Array.from(pages, of), column);
      put(section.pageHeaderBytes, (page) => page.headerBytes);
      put(section.pageLevelBytes, (page) => page.levelBytes);
      put(section.pageStoredBytes, (page) => page.storedBytes);
      put(section.pageRawBytes, (page) => page.rawBytes);
      put(section.pageValues, (page) => page.valueCount);
      sections.words(
        section.pageCrcs,
        Uint32Array.from(pages, (page) => page.crc),
        column,
      );
    }
  }
}
