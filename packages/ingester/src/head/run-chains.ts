import type { HeadBlock } from "@skald/storage";

/**
 * The runs of each stream of a head, newest first: a linked list through all runs, so that looking for a row of one
 * stream does not meet the others. Each run also knows the latest time of the runs before it, where a search may end.
 */
export class RunChains {
  /** By stream: its last run plus one, 0 when the head has none. */
  #last = new Int32Array(0);
  /** By run: the run of the same stream before it plus one. */
  #before = new Int32Array(64);
  #maxBefore = new Float64Array(64);
  readonly #blocks: readonly HeadBlock[];
  #count = 0;
  /** First run of each block. */
  readonly #blockStart: number[] = [];
  #streams = 0;

  /** Follows the blocks of a head; tell it of each append. */
  constructor(blocks: readonly HeadBlock[]) {
    this.#blocks = blocks;
  }

  /** Streams that have rows. */
  get streamCount(): number {
    return this.#streams;
  }

  has(stream: number): boolean {
    return stream < this.#last.length && this.#last[stream]! > 0;
  }

  /** Last run of a stream, or -1. */
  lastRun(stream: number): number {
    return stream < this.#last.length ? this.#last[stream]! - 1 : -1;
  }

  /** The run of the same stream before a run, or -1. */
  runBefore(run: number): number {
    return this.#before[run]! - 1;
  }

  /** Latest time of all runs before a run of the same stream; -Infinity when there are none. */
  maxBefore(run: number): number {
    return this.#maxBefore[run]!;
  }

  /** Block of a run; the run's number within the block is the run minus `firstRun(block)`. */
  blockOf(run: number): number {
    let low = 0;
    let high = this.#blockStart.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#blockStart[middle]! <= run) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  firstRun(block: number): number {
    return this.#blockStart[block]!;
  }

  /** Takes notice of the run that an append to the last block began, if it did. */
  add(stream: number): void {
    const last = this.#blocks.length - 1;
    while (this.#blockStart.length <= last) this.#blockStart.push(this.#count);
    const block = this.#blocks[last] as HeadBlock;
    if (block.runCount > this.#count - this.#blockStart[last]!) this.#link(stream);
  }

  /** Starts again from what the blocks hold. */
  rebuild(): void {
    this.#last.fill(0);
    this.#count = 0;
    this.#streams = 0;
    this.#blockStart.length = 0;
    for (const block of this.#blocks) {
      this.#blockStart.push(this.#count);
      for (let run = 0; run < block.runCount; run++) this.#link(block.columns.runStream[run]!);
    }
  }

  #link(stream: number): void {
    const run = this.#count++;
    if (stream >= this.#last.length) this.#last = grown(this.#last, stream + 1);
    if (run >= this.#before.length) {
      this.#before = grown(this.#before, run + 1);
      const maxBefore = new Float64Array(this.#before.length);
      maxBefore.set(this.#maxBefore);
      this.#maxBefore = maxBefore;
    }
    const before = this.#last[stream]! - 1;
    if (before < 0) this.#streams++;
    this.#before[run] = before + 1;
    this.#maxBefore[run] =
      before < 0 ? Number.NEGATIVE_INFINITY : Math.max(this.#maxBefore[before]!, this.#max(before));
    this.#last[stream] = run + 1;
  }

  #max(run: number): number {
    const block = this.blockOf(run);
    const { runMax } = (this.#blocks[block] as HeadBlock).columns;
    return runMax[run - this.#blockStart[block]!]!;
  }
}

function grown(from: Int32Array, atLeast: number): Int32Array<ArrayBuffer> {
  const to = new Int32Array(Math.max(atLeast, 2 * from.length, 16));
  to.set(from);
  return to;
}
