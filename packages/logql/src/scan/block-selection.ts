import {
  type Block,
  type BlockFacts,
  fnv1a32,
  formatLabels,
  type Labels,
  type LevelCounts,
  type TimeSlices,
} from "@skald/model";

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
export function forEachSetRow(
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
  #block: Block | undefined;
  #run = 0;
  #key = Number.NaN;

  /** Begins with the rows of a block. */
  start(block: Block, streams: StreamLabels): void {
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
