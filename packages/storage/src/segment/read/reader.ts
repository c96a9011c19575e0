import {
  type BlockFacts,
  internal,
  type NeedleFormula,
  type SegmentRef,
  SkaldError,
} from "@skald/model";
import type { PageMemory } from "../../bytes.js";
import { FilterReader } from "../filter/filter-reader.js";
import type { IndexImage } from "../index-image.js";
import { endBytes, parseTrailer, trailerBytes, trailerFromEnd } from "../layout.js";
import {
  type AsyncRangeReader,
  openOver,
  type RangeReader,
  type SyncRangeReader,
} from "../range-reader.js";
import {
  type BlockHeader,
  type BlockRange,
  type ColumnSelection,
  corruptSegment,
  corruptSegmentOf,
  type LabelTable,
  type PageSet,
  type RunsWithin,
  type Segment,
} from "../segment.js";
import { type ByteRange, PageReader, pageSet, segmentBlock } from "./block.js";
import {
  decodeIndex,
  firstMetadataColumn,
  lineColumn,
  SegmentIndex,
  timestampColumn,
} from "./index-reader.js";

/** What must be known about a segment to open it. */
export type SegmentIdentity = Pick<SegmentRef, "id" | "tenant">;

/** Bytes that are read at once from the end of the file: most often the whole index and more. */
const tailBytes = 64 * 1024;

/**
 * Opens a segment and decodes its index; reads no page, and nothing at all with the image of an earlier opening. Throws
 * `internal`, naming the file, when it was not written by this store, is damaged, or belongs to another tenant.
 */
export function openSegment(
  reader: SyncRangeReader,
  identity: SegmentIdentity,
  image?: IndexImage,
): Segment {
  return guarded(reader.name, () => {
    const index = image === undefined ? openIndex(reader) : new SegmentIndex(image);
    return new OpenedSegment(reader, index, identity);
  });
}

/** Reads the own index of a segment of any tenant. Throws `internal`, naming the file, as `openSegment` does. */
export function openIndex(reader: SyncRangeReader): SegmentIndex {
  return guarded(reader.name, () => {
    const steps = loadIndex(reader.name, reader.sizeBytes);
    let step = steps.next();
    while (!step.done) step = steps.next(reader.read(step.value.from, lengthOf(step.value)));
    return step.value;
  });
}

/** Opens a segment of an object store. Its blocks read only from pages that were fetched before. */
export async function openSegmentAsync(
  reader: AsyncRangeReader,
  identity: SegmentIdentity,
  options: { readonly signal: AbortSignal },
): Promise<Segment> {
  const steps = loadIndex(reader.name, reader.sizeBytes);
  let step = guarded(reader.name, () => steps.next());
  while (!step.done) {
    const bytes = await reader.read(step.value.from, lengthOf(step.value), options);
    step = guarded(reader.name, () => steps.next(bytes));
  }
  const index = step.value;
  return guarded(reader.name, () => new OpenedSegment(reader, index, identity));
}

class OpenedSegment implements Segment {
  readonly id: string;
  readonly tenant: string;
  readonly baseNs: bigint;
  readonly minNs: bigint;
  readonly maxNs: bigint;
  readonly rowCount: number;
  readonly sizeBytes: number;
  readonly streamCount: number;
  readonly blockCount: number;
  readonly image: IndexImage;
  readonly streams: LabelTable;
  readonly #reader: RangeReader;
  readonly #index: SegmentIndex;
  readonly #pages: PageReader;
  readonly #headers: (BlockHeader | undefined)[] = [];
  #filters: FilterReader | "none" | undefined;

  constructor(reader: RangeReader, index: SegmentIndex, identity: SegmentIdentity) {
    if (index.tenant !== identity.tenant) {
      throw internal(`it belongs to tenant ${index.tenant}, not ${identity.tenant}`);
    }
    this.id = identity.id;
    this.tenant = index.tenant;
    this.baseNs = index.baseNs;
    this.minNs = index.baseNs + BigInt(index.minTime);
    this.maxNs = index.baseNs + BigInt(index.maxTime);
    this.rowCount = index.rowCount;
    this.sizeBytes = reader.sizeBytes;
    this.streamCount = index.streams.count;
    this.blockCount = index.blockCount;
    this.image = index.image;
    this.streams = index.streams;
    this.#reader = reader;
    this.#index = index;
    this.#pages = new PageReader(reader, index);
  }

  text(stream: number) {
    return this.#guard(() => this.#index.streams.text(stream));
  }

  labels(stream: number) {
    return this.#guard(() => this.#index.streams.labels(stream));
  }

  labelNames() {
    return this.#index.streams.names;
  }

  labelValues(name: string) {
    const column = this.#index.streams.column(name);
    return Array.from({ length: column?.valueCount ?? 0 }, (_, code) => column!.value(code));
  }

  metadataRows(): ReadonlyMap<string, number> {
    return this.#guard(() => {
      const rows = new Map(this.#index.more().names.map((name) => [name, 1]));
      this.#index.metadataNames.forEach((name, i) => {
        const { values } = this.#index.pages(firstMetadataColumn + i);
        rows.set(
          name,
          values.reduce((sum, count) => sum + count, 0),
        );
      });
      return rows;
    });
  }

  forEachRun(stream: number, visit: (block: number, run: number) => void): void {
    this.#index.runs.forEachOf(stream, visit);
  }

  blocksOf(streams: Uint32Array, within?: RunsWithin): Uint32Array {
    return this.#index.runs.blocksOf(streams, within);
  }

  digests(stream: number) {
    return this.#guard(() => this.#index.digests()?.of(stream));
  }

  marks(block: number) {
    return this.#guard(() => this.#index.marksOf(block));
  }

  metadataBytes(block: number) {
    return this.#guard(() => this.#index.metadataBytesOf(block));
  }

  levels(block: number, run: number) {
    return this.#guard(() => this.#index.levels()?.of(block, run));
  }

  slices(block: number, run: number) {
    return this.#guard(() => this.#index.slices()?.of(block, run));
  }

  facts(block: number): BlockFacts | undefined {
    const found = this.#guard(() => this.#index.facts()?.ofBlock(block));
    if (found === undefined) return undefined;
    return { ...found, rowsWith: (text) => this.#guard(() => found.rowsWith(text)) };
  }

  metadataNames(block: number) {
    this.#checkBlock(block);
    return this.#guard(() => this.#index.namesOf(block));
  }

  runs(block: number) {
    this.#checkBlock(block);
    return this.#index.runs.of(block);
  }

  matchStreams(matchers: Parameters<Segment["matchStreams"]>[0]) {
    return this.#guard(() => this.#index.streams.match(matchers));
  }

  header(block: number): BlockHeader {
    this.#checkBlock(block);
    this.#headers[block] ??= this.#guard(() => blockHeader(this.#index, block));
    return this.#headers[block];
  }

  block(block: number, pages?: PageSet, memory?: PageMemory) {
    const { rowCount, runs } = this.header(block);
    return segmentBlock({
      index: this.#index,
      reader: this.#pages,
      pages,
      memory,
      block,
      rowCount,
      runs,
      facts: this.facts(block),
      guard: (read) => this.#guard(read),
    });
  }

  refuse(formula: NeedleFormula, wanted: Uint8Array): boolean {
    return this.#guard(() => {
      this.#filters ??= openFilters(this.#reader, this.#index);
      if (this.#filters === "none") return false;
      this.#filters.refuse(formula, wanted);
      return true;
    });
  }

  readPages(blocks: BlockRange, columns: ColumnSelection, memory?: PageMemory): PageSet {
    const reader = this.#reader;
    if (reader.kind !== "sync")
      throw new Error(`segment ${this.id} can only be read by fetchPages`);
    return this.#guard(() => {
      const ranges = this.#ranges(blocks, columns);
      return pageSet(
        ranges,
        ranges.map((range) => reader.read(range.from, lengthOf(range), memory)),
      );
    });
  }

  async fetchPages(
    blocks: BlockRange,
    columns: ColumnSelection,
    options: { readonly signal: AbortSignal },
  ): Promise<PageSet> {
    const reader = this.#reader;
    if (reader.kind === "sync") return this.readPages(blocks, columns);
    const ranges = this.#guard(() => this.#ranges(blocks, columns));
    const parts = await Promise.all(
      ranges.map((range) => reader.read(range.from, lengthOf(range), options)),
    );
    return pageSet(ranges, parts);
  }

  #ranges(blocks: BlockRange, columns: ColumnSelection): ByteRange[] {
    if (blocks.from < blocks.to) {
      this.#checkBlock(blocks.from);
      this.#checkBlock(blocks.to - 1);
    }
    return this.#pages.ranges(columnsOf(this.#index, columns), blocks);
  }

  #checkBlock(block: number): void {
    if (block >= 0 && block < this.blockCount) return;
    throw new Error(`segment ${this.id} has ${this.blockCount} blocks, not block ${block}`);
  }

  #guard<T>(read: () => T): T {
    return guarded(this.#reader.name, read);
  }
}

function openFilters(reader: RangeReader, index: SegmentIndex): FilterReader | "none" {
  const table = reader.kind === "sync" ? index.filters() : undefined;
  return table === undefined || reader.kind !== "sync" ? "none" : new FilterReader(reader, table);
}

/** Asks for the ranges that it needs, one at a time, and returns the parsed index. */
function* loadIndex(
  name: string,
  sizeBytes: number,
): Generator<ByteRange, SegmentIndex, Uint8Array> {
  if (sizeBytes < trailerBytes + endBytes) throw internal("it is too short");
  let tailFrom = Math.max(0, sizeBytes - tailBytes);
  let tail = yield { from: tailFrom, to: sizeBytes };
  const fromEnd = trailerFromEnd(tail, name);
  if (fromEnd > sizeBytes) throw internal("its footer is longer than the file");
  if (fromEnd > tail.byteLength) {
    tailFrom = sizeBytes - fromEnd;
    tail = yield { from: tailFrom, to: sizeBytes };
  }
  const trailerAt = sizeBytes - fromEnd;
  const trailer = parseTrailer(
    tail.subarray(trailerAt - tailFrom),
    fromEnd - trailerBytes - endBytes,
    name,
  );
  const indexEnd = trailer.indexOffset + trailer.indexBytes;
  if (indexEnd !== trailerAt) throw internal("its index does not end at the trailer");
  const stored =
    trailer.indexOffset >= tailFrom
      ? tail.subarray(trailer.indexOffset - tailFrom, indexEnd - tailFrom)
      : yield { from: trailer.indexOffset, to: indexEnd };
  return new SegmentIndex(decodeIndex(stored, trailer, sizeBytes));
}

function blockHeader(index: SegmentIndex, block: number): BlockHeader {
  const runs = index.runs.of(block);
  let minTime = Number.POSITIVE_INFINITY;
  let maxTime = Number.NEGATIVE_INFINITY;
  let lineBytes = 0;
  for (let r = 0; r < runs.count; r++) {
    minTime = Math.min(minTime, runs.minTime[r]!);
    maxTime = Math.max(maxTime, runs.maxTime[r]!);
    lineBytes += runs.lineBytes[r]!;
  }
  const rowCount = runs.rowStart[runs.count]!;
  let storedBytes = 0;
  let rawBytes = 0;
  for (let column = 0; column < index.columnCount; column++) {
    const pages = index.pages(column);
    storedBytes += pages.levelBytes[block]! + pages.storedBytes[block]!;
    rawBytes += pages.levelBytes[block]! + pages.rawBytes[block]!;
  }
  return { rowCount, runs, minTime, maxTime, lineBytes, storedBytes, rawBytes };
}

/** Numbers of the columns that have pages to fetch. */
function columnsOf(index: SegmentIndex, selection: ColumnSelection): number[] {
  const columns: number[] = [];
  if (selection.timestamps) columns.push(timestampColumn);
  if (selection.lines) columns.push(lineColumn);
  const wanted = selection.metadata === "all" ? undefined : new Set(selection.metadata);
  index.metadataNames.forEach((name, i) => {
    if (wanted?.delete(name) ?? true) columns.push(firstMetadataColumn + i);
  });
  const fields = new Set(selection.fields ?? []);
  index.fieldNames().forEach((name, i) => {
    if (fields.has(name)) columns.push(index.columnCount + i);
  });
  // A name without a column may be in the map.
  if (wanted === undefined || wanted.size > 0)
    columns.push(index.columnCount - 2, index.columnCount - 1);
  return columns;
}

function lengthOf(range: ByteRange): number {
  return range.to - range.from;
}

/** Runs a read, and names the file in errors about its contents. */
function guarded<T>(name: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof SkaldError) || error.code !== "internal") throw error;
    throw corruptSegmentOf(error) === undefined ? corruptSegment(name, error) : error;
  }
}

export interface OpenedSegmentFile {
  readonly segment: Segment;
  /** Gives the file descriptor back; the next read opens the file again. */
  readonly suspend?: () => void;
  /** Closes the file; the segment must not be read any more. */
  close(): void;
}

/**
 * Opens the segment in a file of this machine, with the image of an earlier opening if there is one. Throws `not_found` when
 * the file is gone, `unavailable` when too many are open, and `internal`, naming the file, when it cannot be read or is not
 * what was written.
 */
export function openSegmentFile(
  ref: Pick<SegmentRef, "id" | "tenant" | "location"> & { readonly sizeBytes?: number },
  image?: IndexImage,
): OpenedSegmentFile {
  const { location } = ref;
  if (location.kind !== "file") throw new Error(`segment ${ref.id} is not a file`);
  // With the image the file is not touched until a page is read.
  return openOver(location.path, image === undefined ? undefined : ref.sizeBytes, (file) => {
    const { suspend, close } = file;
    return { segment: openSegment(file, ref, image), suspend, close };
  });
}
