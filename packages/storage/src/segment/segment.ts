import {
  type Block,
  type BlockFacts,
  type Labels,
  type LevelCounts,
  type Matcher,
  type NeedleFormula,
  type RunTable,
  SkaldError,
  type TimeSlices,
} from "@skald/model";
import type { PageMemory } from "../bytes.js";
import type { Column, IndexImage } from "./index-image.js";

/**
 * A sealed file of one tenant and one UTC day, opened: its index is in memory, its pages are read when a block asks
 * for them. Streams are numbered in the order of their canonical texts, blocks in the order of their rows (by stream,
 * then time). Whatever reads the file throws `internal`, naming it, when the bytes are not what was written: the
 * caller sets the segment aside.
 */
export interface Segment {
  readonly id: string;
  readonly tenant: string;
  /** Start of the UTC day: ns since the epoch. */
  readonly baseNs: bigint;
  /** ns since the epoch, inclusive */
  readonly minNs: bigint;
  readonly maxNs: bigint;
  readonly rowCount: number;
  readonly sizeBytes: number;
  readonly streamCount: number;
  readonly blockCount: number;

  /** The decoded index, for another opening of the segment; on any thread when its memory is shared. */
  readonly image: IndexImage;
  readonly streams: LabelTable;

  /** Canonical label text of a stream; made anew each time. */
  text(stream: number): string;
  /** Labels of a stream; made anew each time. */
  labels(stream: number): Labels;
  /** Names of the labels of any stream, sorted. */
  labelNames(): readonly string[];
  /** Values that any stream has for the name, sorted; empty when no stream has it. */
  labelValues(name: string): readonly string[];
  /**
   * In how many rows each name of structured metadata has a value; of names that have no column it is known only that they
   * are there.
   */
  metadataRows(): ReadonlyMap<string, number>;
  /** Streams that satisfy every matcher, ascending. Each matcher is tested once per distinct value of its name. */
  matchStreams(matchers: readonly Matcher[]): Uint32Array;

  /** Calls back for each run of a stream, in order, without a look at the others. */
  forEachRun(stream: number, visit: (block: number, run: number) => void): void;
  /** The blocks with runs of some streams; both ascend. Looks at few runs of other streams. */
  blocksOf(streams: Uint32Array, within?: RunsWithin): Uint32Array;
  /** Digests of the rows of a stream; undefined when it has none. */
  digests(stream: number): StreamDigests | undefined;
  /** A mark of each row of a block: rows of different marks differ. Undefined when there are none. */
  marks(block: number): Uint32Array | undefined;
  /** Bytes of names and values of structured metadata, of each run of a block; undefined when they were not counted. */
  metadataBytes(block: number): Float64Array | undefined;
  /** The rows of a run by `detected_level`; undefined when they were not counted. */
  levels(block: number, run: number): LevelCounts | undefined;
  /** The rows of a run by slices of time; undefined when they were not counted. */
  slices(block: number, run: number): TimeSlices | undefined;
  /** What is known of the rows of a block without their lines; undefined when nothing is. */
  facts(block: number): BlockFacts | undefined;
  /** Names of the structured metadata that a block has; blocks with the same names share one list. */
  metadataNames(block: number): readonly string[];
  runs(block: number): RunTable;
  /** What the index knows about a block without reading it; cached. */
  header(block: number): BlockHeader;
  /**
   * A block whose columns are read on demand: from `pages` where they hold them, else by the segment's reader.
   * With an asynchronous reader the pages must hold every column that is asked for. Decompressed pages go to
   * `memory` when it is given, and are gone when that is used again.
   */
  block(block: number, pages?: PageSet, memory?: PageMemory): Block;
  /**
   * Clears the flags (one for each block, 1: wanted) of blocks that surely have no row that the formula asks for. False
   * when the segment has no filters to ask. Needs a synchronous reader.
   */
  refuse(formula: NeedleFormula, wanted: Uint8Array): boolean;
  /** Reads the pages of the columns of a range of blocks, adjacent pages in one read. Needs a synchronous reader. */
  readPages(blocks: BlockRange, columns: ColumnSelection, memory?: PageMemory): PageSet;
  /** The same with either reader. */
  fetchPages(
    blocks: BlockRange,
    columns: ColumnSelection,
    options: { readonly signal: AbortSignal },
  ): Promise<PageSet>;
}

/** Streams of one source by their labels. */
export interface LabelTable {
  /** Numbers of streams are below it. */
  readonly count: number;
  /** Names of the labels of any stream, sorted. */
  readonly names: readonly string[];
  /** Two numbers for each stream: equal for equal label sets of any source, and almost surely different for others. */
  readonly hashes: Uint32Array;
  /** Label sets and texts that were put together so far. */
  readonly made: number;
  /** What each stream has for a name; undefined when no stream has it. */
  column(name: string): StreamColumn | undefined;
  /** Streams that satisfy every matcher, ascending. */
  match(matchers: readonly Matcher[]): Uint32Array;
  labels(stream: number): Labels;
  /** Canonical label text. */
  text(stream: number): string;
}

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

/**
 * Digests of the rows of one stream, minute by minute: equal digests of two sources mean the same rows. A minute without
 * rows has no digest.
 */
export interface StreamDigests {
  /** Minutes of the day, ascending. */
  readonly minutes: Float64Array;
  readonly rows: Float64Array;
  /** Wrapping sums of the halves of row hashes: low, then high. */
  readonly sums: Uint32Array;
}

/** Header of a sealed block. The rows of each run ascend in time, and each stream has one run. */
export interface BlockHeader {
  readonly rowCount: number;
  readonly runs: RunTable;
  /** ns since the segment's base, over all runs, inclusive */
  readonly minTime: number;
  readonly maxTime: number;
  /** Bytes of the lines, without metadata. */
  readonly lineBytes: number;
  /** Bytes of all pages of the block as stored, and once decompressed. */
  readonly storedBytes: number;
  readonly rawBytes: number;
}

/** Runs of some blocks, with rows in a stretch of time. */
export interface RunsWithin {
  readonly blocks?: BlockRange;
  /** ns since the segment's base: half open; no bound when absent. */
  readonly from?: number;
  readonly to?: number;
}

/** The blocks `from .. to)`. */
export interface BlockRange {
  readonly from: number;
  readonly to: number;
}

/** Columns to read ahead. */
export interface ColumnSelection {
  readonly timestamps: boolean;
  readonly lines: boolean;
  /** Names of structured metadata, or all of it. */
  readonly metadata: readonly string[] | "all";
  /** Names of fields of lines; none when absent. */
  readonly fields?: readonly string[] | undefined;
}

/** Stored bytes of some pages, read ahead; drop it and the memory is free. */
export interface PageSet {
  readonly sizeBytes: number;
  /** The bytes `offset .. offset + length)` of the file, with padding behind them; undefined when not held. */
  find(offset: number, length: number): Uint8Array | undefined;
}

interface CorruptSegment {
  readonly kind: "corrupt_segment";
  readonly name: string;
}

/** The error of a segment that is not what was written; it names the file or key, also to `corruptSegmentOf`. */
export function corruptSegment(name: string, reason: SkaldError): SkaldError {
  const detail: CorruptSegment = { kind: "corrupt_segment", name };
  const { message } = reason;
  const text = message.includes(name) ? message : `segment ${name} cannot be read: ${message}`;
  return new SkaldError("internal", text, { detail });
}

/** The file or key of the damaged segment that an error is about; undefined for any other error. */
export function corruptSegmentOf(error: unknown): string | undefined {
  const detail = error instanceof SkaldError ? error.detail : undefined;
  const { kind, name } = (detail ?? {}) as Partial<CorruptSegment>;
  return kind === "corrupt_segment" ? name : undefined;
}

/** The message about a part of a file that does not match its checksum. */
export function wrongChecksum(part: string, expected: number, found: number): string {
  const hex = (crc: number) => crc.toString(16).padStart(8, "0");
  return `${part} does not match its checksum: expected ${hex(expected)}, found ${hex(found)}`;
}
