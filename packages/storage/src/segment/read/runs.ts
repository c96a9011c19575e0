import { internal, lowerBound, type RunTable } from "@skald/model";
import type { Column, ImageReader } from "../index-image.js";
import { type SectionReader, section } from "../index-sections.js";
import type { RunsWithin } from "../segment.js";

/** Parts that runs take in an image. */
export const runParts = 6;

/** Runs of blocks, numbered through; block is whatever has runs of its own. */
export class RunColumns {
  /** First run of each block, and the number of all. */
  readonly first: Uint32Array;
  readonly stream: Uint32Array;
  readonly rowStart: Uint32Array;
  /** ns since the base; both inclusive. */
  readonly minTime: Float64Array;
  readonly maxTime: Float64Array;
  readonly #lineBytes: Float64Array;

  /** The runs of an image, whose parts begin at `part`. */
  constructor(image: ImageReader, part: number) {
    this.first = image.words(part);
    this.stream = image.words(part + 1);
    this.rowStart = image.words(part + 2);
    this.minTime = image.numbers(part + 3);
    this.maxTime = image.numbers(part + 4);
    this.#lineBytes = image.numbers(part + 5);
  }

  of(block: number): RunTable {
    const from = this.first[block]!;
    const to = this.first[block + 1]!;
    return {
      count: to - from,
      stream: this.stream.subarray(from, to),
      // The row starts of a block are one more than its runs.
      rowStart: this.rowStart.subarray(from + block, to + block + 1),
      minTime: this.minTime.subarray(from, to),
      maxTime: this.maxTime.subarray(from, to),
      lineBytes: this.#lineBytes.subarray(from, to),
    };
  }
}

/** The runs of the blocks of a segment, ordered by stream. */
export class BlockRuns {
  readonly blockCount: number;
  readonly #columns: RunColumns;
  readonly #tables: (RunTable | undefined)[] = [];

  constructor(columns: RunColumns) {
    this.#columns = columns;
    this.blockCount = columns.first.length - 1;
  }

  of(block: number): RunTable {
    this.#tables[block] ??= this.#columns.of(block);
    return this.#tables[block];
  }

  /** The number of all runs. */
  get count(): number {
    return this.#columns.stream.length;
  }

  /** The runs of a block, among all: [from, to). */
  placesOf(block: number): [from: number, to: number] {
    return [this.#columns.first[block]!, this.#columns.first[block + 1]!];
  }

  /** Calls back for each run of a stream, in order; streams ascend over the runs, so nothing else is looked at. */
  forEachOf(wanted: number, visit: (block: number, run: number) => void): void {
    const { first, stream } = this.#columns;
    let run = lowerBound(stream, wanted);
    if (stream[run] !== wanted) return;
    let block = lowerBound(first, run + 1) - 1;
    for (; stream[run] === wanted; run++) {
      while (first[block + 1]! <= run) block++;
      visit(block, run - first[block]!);
    }
  }

  /** The blocks with runs of some streams; both ascend. */
  blocksOf(streams: Uint32Array, within: RunsWithin = {}): Uint32Array {
    const { first, stream, minTime, maxTime } = this.#columns;
    const { blocks = { from: 0, to: this.blockCount } } = within;
    const { from = Number.NEGATIVE_INFINITY, to = Number.POSITIVE_INFINITY } = within;
    const found = new Uint32Array(Math.max(0, blocks.to - blocks.from));
    const end = first[blocks.to]!;
    let count = 0;
    let block = blocks.from;
    let at = 0;
    for (let run = first[block]!; run < end && at < streams.length; ) {
      const wanted = streams[at]!;
      if (stream[run]! < wanted) run = lowerBound(stream, wanted, run);
      else if (stream[run]! > wanted) at = lowerBound(streams, stream[run]!, at);
      else if (maxTime[run]! < from || minTime[run]! >= to) run++;
      else {
        while (first[block + 1]! <= run) block++;
        found[count++] = block;
        run = first[block + 1]!;
      }
    }
    return found.subarray(0, count);
  }
}

/** The columns of the runs, checked. Throws `internal`. */
export function decodeRuns(
  sections: SectionReader,
  total: { readonly streams: number; readonly rows: number },
): Column[] {
  const counts = sections.numbers(section.runCounts);
  const stream = Uint32Array.from(sections.numbers(section.runStreams));
  const rows = sections.numbers(section.runRows);
  const minTime = sections.numbers(section.runMinTimes);
  const maxTime = sections.numbers(section.runSpans);
  const lineBytes = sections.numbers(section.runLineBytes);
  const blockCount = counts.length;
  const first = new Uint32Array(blockCount + 1);
  const rowStart = new Uint32Array(stream.length + blockCount);
  let run = 0;
  let rowTotal = 0;
  let before = 0;
  for (let block = 0; block < blockCount; block++) {
    first[block] = run;
    let row = 0;
    const end = run + counts[block]!;
    if (end > stream.length) throw internal("index has fewer runs than its blocks");
    for (; run < end; run++) {
      const of = stream[run]!;
      if (of >= total.streams)
        throw internal(`index has a run of stream ${of} of ${total.streams}`);
      if (of < before) throw internal(`index has a run of stream ${of} behind one of ${before}`);
      before = of;
      rowStart[run + block] = row;
      row += rows[run]!;
      maxTime[run]! += minTime[run]!;
    }
    rowStart[run + block] = row;
    rowTotal += row;
  }
  first[blockCount] = run;
  if (rowTotal !== total.rows) throw internal(`index has runs of ${rowTotal} rows`);
  return [first, stream.subarray(0, run), rowStart, minTime, maxTime, lineBytes];
}
