import { internal, lowerBound, type RunTable } from "@skald/model";
import type { Column, ImageReader } from "../index-image.js";
import { type SectionReader, section } from "../index-sections.js";

/** Parts that runs take in an image. */
export const runParts = 6;

/** Runs of blocks, numbered through; block is whatever has runs of its own. */
export class RunColumns {
  /** First run of each block, and the number of all. */
  readonly first: Uint32Array;
  readonly stream: Uint32Array;
  readonly rowStart: Uint32Array;
  readonly #minTime: Float64Array;
  readonly #maxTime: Float64Array;
  readonly #lineBytes: Float64Array;

  /** The runs of an image, whose parts begin at `part`. */
  constructor(image: ImageReader, part: number) {
    this.first = image.words(part);
    this.stream = image.words(part + 1);
    this.rowStart = image.words(part + 2);
    this.#minTime = image.numbers(part + 3);
    this.#maxTime = image.numbers(part + 4);
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
      minTime: this.#minTime.subarray(from, to),
      maxTime: this.#maxTime.subarray(from, to),
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
