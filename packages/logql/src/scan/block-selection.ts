import {
  type Block,
  type BlockFacts,
  fnv1a32,
  formatLabels,
  type Labels,
  type LevelCounts,
  type TimeSlices,
} from "@skald/model";
import type { BucketCursor } from "../plan/window-grid.js";

/**
 * Labels of the streams of one source by stream number. Its identity stands for the source: give the same function
 * for all blocks of a source, and another for another source.
 */
export interface StreamLabels {
  (stream: number): Labels;
  /** Only the labels of some names; streams that are equal in them share one object. */
  readonly only?: (names: readonly string[]) => (stream: number) => Labels;
}

/** Which rows of a block a scan may use: the rows of some runs, without a few. */
export interface RunSelection {
  /** Numbers of the runs, ascending. */
  readonly runs: Uint32Array;
  /** Rows to leave out (copies in another source, deleted rows), ascending. */
  readonly excluded?: Uint32Array;
}

/** One run of a block's header: what `addRun` may count without a column. */
export interface RunHeader {
  readonly stream: number;
  readonly rows: number;
  /** ns since baseNs, both inclusive */
  readonly minTime: number;
  readonly maxTime: number;
  readonly lineBytes: number;
  /** Its rows by `detected_level`; absent, or undefined, when that is not known. */
  readonly levels?: () => LevelCounts | undefined;
  /** Its rows by slices of time, in the same way. */
  readonly slices?: () => TimeSlices | undefined;
}

/** What is known of a block before any column is read. */
export interface BlockSummary {
  /** ns since the epoch */
  readonly baseNs: bigint;
  readonly metadataNames: readonly string[];
}

/** The columns that `addBlock` may ask for, so that a reader can fetch them before. */
export interface ColumnNeeds {
  readonly lines: boolean;
  /** Whether a block needs its lines, given what is known without them; as `lines` says when absent. */
  readonly linesOf?: (block: BlockStreams) => boolean;
  /** Fields of lines that are read as columns where blocks have them. */
  readonly fields?: readonly string[];
  /** true: all; else the names of interest, which a block may lack. */
  readonly metadata: true | readonly string[];
  readonly timestamps: boolean;
}

/** What is known of a block and its streams before it is read. */
export interface BlockStreams {
  readonly facts: BlockFacts | undefined;
  /** Streams of its runs. */
  readonly streams: Uint32Array;
  /** Names of the labels of any stream of the source. */
  readonly labelNames: readonly string[];
}

/** The rows of a block, and their timestamps. */
export type TimedRows = Pick<Block, "baseNs" | "rowCount" | "runs" | "timestamps">;

/** The same, and the rows of a run by slices of time; undefined where they are not known. */
export type SlicedRows = TimedRows & { slices(run: number): TimeSlices | undefined };

/** Calls back for the stretches of rows of each selected run that have no excluded row in them. */
export function forEachStretch(
  block: Pick<Block, "runs">,
  selection: RunSelection,
  visit: (run: number, from: number, to: number) => void,
): void {
  const { rowStart } = block.runs;
  const { runs, excluded } = selection;
  let next = 0;
  for (const run of runs) {
    let from = rowStart[run]!;
    const to = rowStart[run + 1]!;
    if (excluded !== undefined) {
      while (next < excluded.length && excluded[next]! < from) next++;
      for (; next < excluded.length && excluded[next]! < to; next++) {
        const row = excluded[next]!;
        if (row > from) visit(run, from, row);
        from = row + 1;
      }
    }
    if (from < to) visit(run, from, to);
  }
}

/** Calls back for each row of `from .. to)` whose bit is set, in order. */
function forEachSetRow(
  words: Uint32Array,
  from: number,
  to: number,
  visit: (row: number) => void,
): void {
  for (let at = from >> 5; at < words.length && at * 32 < to; at++) {
    for (let left = words[at]!; left !== 0; left &= left - 1) {
      const row = at * 32 + 31 - Math.clz32(left & -left);
      if (row >= to) return;
      if (row >= from) visit(row);
    }
  }
}

/** The rows of a block that lie in a window of the leaf, ascending, each with its bucket. Reused block by block. */
export class WindowRows {
  count = 0;
  rows = new Uint32Array(0);
  /** By row number, not by position. */
  bucketOfRow = new Uint32Array(0);

  /** Selects the rows of the runs without the excluded ones. Reads timestamps only of runs that cross an edge. */
  select(block: TimedRows, selection: RunSelection, cursor: BucketCursor): void {
    this.#reset(block);
    forEachStretch(block, selection, (run, from, to) => {
      const { minTime, maxTime } = block.runs;
      if (cursor.covers(minTime[run]!, maxTime[run]!)) {
        if (cursor.bucket >= 0) this.#addAll(from, to, cursor.bucket);
      } else {
        this.#addByTime(from, to, block.timestamps(), cursor);
      }
    });
  }

  /** The same, of the rows whose bit is set in `words`: other rows cannot pass. */
  selectSome(
    block: Block,
    selection: RunSelection,
    cursor: BucketCursor,
    words: Uint32Array,
  ): void {
    this.#reset(block);
    const { rows, bucketOfRow } = this;
    let times: Float64Array | undefined;
    const add = (row: number) => {
      if (times !== undefined) {
        const time = times[row]!;
        if (time < cursor.low || time >= cursor.high) cursor.seek(time);
        if (cursor.bucket < 0) return;
      }
      bucketOfRow[row] = cursor.bucket;
      rows[this.count++] = row;
    };
    forEachStretch(block, selection, (run, from, to) => {
      const { minTime, maxTime } = block.runs;
      const isInOne = cursor.covers(minTime[run]!, maxTime[run]!);
      if (isInOne && cursor.bucket < 0) return;
      times = isInOne || !hasSetRow(words, from, to) ? undefined : block.timestamps();
      if (isInOne || times !== undefined) forEachSetRow(words, from, to, add);
    });
  }

  #reset({ rowCount }: Pick<Block, "rowCount">): void {
    this.count = 0;
    if (this.rows.length >= rowCount) return;
    this.rows = new Uint32Array(rowCount);
    this.bucketOfRow = new Uint32Array(rowCount);
  }

  #addAll(from: number, to: number, bucket: number): void {
    let { count } = this;
    for (let row = from; row < to; row++) this.rows[count++] = row;
    this.bucketOfRow.fill(bucket, from, to);
    this.count = count;
  }

  #addByTime(from: number, to: number, times: Float64Array, cursor: BucketCursor): void {
    const { rows, bucketOfRow } = this;
    let { count } = this;
    let { bucket, low, high } = cursor;
    for (let row = from; row < to; row++) {
      const time = times[row]!;
      if (time < low || time >= high) {
        cursor.seek(time);
        ({ bucket, low, high } = cursor);
      }
      if (bucket < 0) continue;
      rows[count++] = row;
      bucketOfRow[row] = bucket;
    }
    this.count = count;
  }
}

/**
 * The rows of a sealed block that lie in a window of the leaf, ascending, in stretches that share a bucket. Rows of a run ascend by time, so
 * that slices of time tell the buckets of rows, too. Reused block by block.
 */
export class WindowStretches {
  count = 0;
  readonly from: number[] = [];
  /** Exclusive. */
  readonly to: number[] = [];
  readonly bucket: number[] = [];
  /** The first of those that may still be taken back, and may grow. */
  #first = 0;

  /** Selects the rows of the runs without the excluded ones. Reads timestamps only where an edge cuts a run, and a slice of it. */
  select(block: SlicedRows, selection: RunSelection, cursor: BucketCursor): void {
    const { runs } = block;
    const add = (bucket: number, from: number, to: number) => this.#add(bucket, from, to);
    this.count = 0;
    forEachStretch(block, selection, (run, from, to) => {
      this.#first = this.count;
      if (cursor.covers(runs.minTime[run]!, runs.maxTime[run]!)) {
        if (cursor.bucket >= 0) add(cursor.bucket, from, to);
        return;
      }
      const slices = block.slices(run);
      if (slices !== undefined && this.#addSlices(runs, run, slices, { from, to }, cursor)) return;
      this.count = this.#first;
      forEachBucket(block.timestamps(), from, to, cursor, add);
    });
  }

  #addSlices(
    { rowStart, minTime, maxTime }: TimedRows["runs"],
    run: number,
    slices: TimeSlices,
    within: { readonly from: number; readonly to: number },
    cursor: BucketCursor,
  ): boolean {
    const header = { minTime: minTime[run]!, maxTime: maxTime[run]! };
    let row = rowStart[run]!;
    for (let at = slices.from; at < slices.to && row < within.to; at++) {
      const from = Math.max(row, within.from);
      row += slices.rows[at]!;
      const to = Math.min(row, within.to);
      if (from >= to) continue;
      if (!coversSlice(cursor, slices, at, header)) return false;
      if (cursor.bucket >= 0) this.#add(cursor.bucket, from, to);
    }
    return true;
  }

  #add(bucket: number, from: number, to: number): void {
    const last = this.count - 1;
    if (last >= this.#first && this.to[last] === from && this.bucket[last] === bucket) {
      this.to[last] = to;
      return;
    }
    this.from[this.count] = from;
    this.to[this.count] = to;
    this.bucket[this.count++] = bucket;
  }
}

/** Moves to the bucket of a slice of a run; true when all times of the run in the slice share it. */
export function coversSlice(
  cursor: BucketCursor,
  { stepNs, first, from }: TimeSlices,
  at: number,
  { minTime, maxTime }: Pick<RunHeader, "minTime" | "maxTime">,
): boolean {
  const begin = (first + at - from) * stepNs;
  return cursor.covers(Math.max(minTime, begin + 1), Math.min(maxTime, begin + stepNs));
}

/** Cuts the rows [from, to) into stretches of one bucket and calls back for those that are in one. */
export function forEachBucket(
  times: Float64Array,
  from: number,
  to: number,
  cursor: BucketCursor,
  visit: (bucket: number, from: number, to: number) => void,
): void {
  let first = from;
  while (first < to) {
    cursor.seek(times[first]!);
    const { low, high } = cursor;
    let end = first + 1;
    while (end < to && times[end]! >= low && times[end]! < high) end++;
    if (cursor.bucket >= 0) visit(cursor.bucket, first, end);
    first = end;
  }
}

/** Whether the bit of any row of `from .. to)` is set. */
function hasSetRow(words: Uint32Array, from: number, to: number): boolean {
  for (let at = from >> 5; at * 32 < to; at++) {
    let word = words[at]!;
    if (at === from >> 5) word &= -1 << (from & 31);
    if (to - at * 32 < 32) word &= 2 ** (to - at * 32) - 1;
    if (word !== 0) return true;
  }
  return false;
}

/**
 * Orders the streams of rows of equal time: by a hash of their label text, so that the order depends on nothing but the
 * data, wherever rows are stored. A number below 2^53.
 */
export function streamKey(labels: Labels): number {
  const text = formatLabels(labels);
  return fnv1a32(text) * 2 ** 21 + (fnv1a32("#", text) >>> 11);
}

/** The keys of the streams of rows, block by block; each is made once. */
export class StreamKeys {
  #source: StreamLabels | undefined;
  #keys = new Map<number, number>();
  #block: Pick<Block, "runs"> | undefined;
  #run = 0;
  #key = Number.NaN;

  /** Begins with the rows of a block. */
  start(block: Pick<Block, "runs">, streams: StreamLabels): void {
    if (streams !== this.#source) this.#keys = new Map();
    this.#source = streams;
    this.#block = block;
    this.#run = 0;
    this.#key = Number.NaN;
  }

  /** The key of the stream of a row; rows are asked for in ascending order. */
  ofRow(row: number): number {
    const { rowStart } = this.#block!.runs;
    if (row < rowStart[this.#run + 1]! && !Number.isNaN(this.#key)) return this.#key;
    while (row >= rowStart[this.#run + 1]!) this.#run++;
    const stream = this.#block!.runs.stream[this.#run]!;
    let key = this.#keys.get(stream);
    if (key === undefined) {
      key = streamKey(this.#source!(stream));
      this.#keys.set(stream, key);
    }
    this.#key = key;
    return key;
  }
}
