import { lowerBound } from "@skald/model";
import type { HeadBlock } from "@skald/storage";

/**
 * The runs of each stream of a head, newest first, as linked lists, so that a search in one stream skips the runs of
 * others. Each run also has the latest time of the runs before it, so that a search can end early, and their size.
 */
export class RunChains {
  /** By stream: its last run. */
  #last = new StreamNumbers();
  /** By run: the run of the same stream before it plus one. */
  #before = new Int32Array(minRuns);
  #maxBefore = new Float64Array(minRuns);
  #sizeBefore = new Float64Array(minRuns);
  /** By run: how many of its rows `fallsOf` has looked at; -1 if times fall often. */
  #looked = new Int32Array(minRuns);
  readonly #falls = new Map<number, readonly number[]>();
  readonly #blocks: readonly HeadBlock[];
  #count = 0;
  /** First run of each block. */
  readonly #blockStart: number[] = [];

  /** `add` must be called after each append to the blocks. */
  constructor(blocks: readonly HeadBlock[]) {
    this.#blocks = blocks;
  }

  /** Number of streams that have rows. */
  get streamCount(): number {
    return this.#last.size;
  }

  /** Numbers of those streams. */
  streams(): Iterable<number> {
    return this.#last.keys();
  }

  has(stream: number): boolean {
    return this.#last.get(stream) >= 0;
  }

  /** Last run of a stream, or -1. */
  lastRun(stream: number): number {
    return this.#last.get(stream);
  }

  /** The run of the same stream before a run, or -1. */
  runBefore(run: number): number {
    return this.#before[run]! - 1;
  }

  /** Latest time of all runs before a run of the same stream; -Infinity when there are none. */
  maxBefore(run: number): number {
    return this.#maxBefore[run]!;
  }

  /**
   * The rows of a run, by their place in its block, that are older than the row before them; undefined when these are many. It looks
   * at the rows that came since it was asked before.
   */
  fallsOf(run: number): readonly number[] | undefined {
    const looked = this.#looked[run]!;
    if (looked < 0) return undefined;
    const index = this.blockOf(run);
    const block = this.#blocks[index] as HeadBlock;
    const { timestamps } = block.columns;
    const { from, to } = rowsOfRun(block, run - this.#blockStart[index]!);
    const falls = [...(this.#falls.get(run) ?? [])];
    for (let at = from + Math.max(looked, 1); at < to && falls.length <= maxFalls; at++)
      if (timestamps[at]! < timestamps[at - 1]!) falls.push(at);
    const areMany = falls.length > maxFalls;
    this.#looked[run] = areMany ? -1 : to - from;
    if (areMany) this.#falls.delete(run);
    else if (falls.length > 0) this.#falls.set(run, falls);
    return areMany ? undefined : falls;
  }

  /** Bytes of the rows of a stream, roughly. */
  sizeOf(stream: number): number {
    const last = this.#last.get(stream);
    return last < 0 ? 0 : this.#sizeBefore[last]! + this.#size(last);
  }

  /** Block of a run; the run's number within the block is the run minus `firstRun(block)`. */
  blockOf(run: number): number {
    return lowerBound(this.#blockStart, run + 1) - 1;
  }

  firstRun(block: number): number {
    return this.#blockStart[block]!;
  }

  /** Adds the run that an append to the last block began, if it began one. */
  add(stream: number): void {
    const last = this.#blocks.length - 1;
    while (this.#blockStart.length <= last) this.#blockStart.push(this.#count);
    const block = this.#blocks[last] as HeadBlock;
    if (block.runCount > this.#count - this.#blockStart[last]!) this.#link(stream);
  }

  /** Rebuilds the lists from the blocks. */
  rebuild(): void {
    this.#last = new StreamNumbers();
    this.#count = 0;
    this.#blockStart.length = 0;
    this.#falls.clear();
    for (const block of this.#blocks) {
      this.#blockStart.push(this.#count);
      for (let run = 0; run < block.runCount; run++) this.#link(block.columns.runStream[run]!);
    }
  }

  #link(stream: number): void {
    const run = this.#count++;
    if (run >= this.#before.length) {
      this.#before = withRoom(this.#before, run + 1);
      this.#maxBefore = withRoom(this.#maxBefore, run + 1);
      this.#sizeBefore = withRoom(this.#sizeBefore, run + 1);
      this.#looked = withRoom(this.#looked, run + 1);
    }
    this.#looked[run] = 0;
    const before = this.#last.get(stream);
    this.#before[run] = before + 1;
    this.#maxBefore[run] =
      before < 0 ? Number.NEGATIVE_INFINITY : Math.max(this.#maxBefore[before]!, this.#max(before));
    // A run does not grow any more when the next one of its stream begins.
    this.#sizeBefore[run] = before < 0 ? 0 : this.#sizeBefore[before]! + this.#size(before);
    this.#last.set(stream, run);
  }

  #size(run: number): number {
    const block = this.blockOf(run);
    return (this.#blocks[block] as HeadBlock).sizeOf(run - this.#blockStart[block]!);
  }

  #max(run: number): number {
    const block = this.blockOf(run);
    const { runMax } = (this.#blocks[block] as HeadBlock).columns;
    return runMax[run - this.#blockStart[block]!]!;
  }
}

/** The rows `[from, to)` of a run of a block. */
export function rowsOfRun(block: HeadBlock, run: number): { from: number; to: number } {
  const { runStart } = block.columns;
  const to = run + 1 < block.runCount ? runStart[run + 1]! : block.rowCount;
  return { from: runStart[run]!, to };
}

/** Times of a run that fall this often are in no order. */
const maxFalls = 32;
/** Room for the runs of a small head. */
const minRuns = 8;
/** Numbers are kept in a list by stream when at least one stream in this many has one, and in a map before. */
const denseFrom = 8;
const maxSparse = 64;

/** A number for each of some streams: a map while these are few among many, a list by stream otherwise. */
class StreamNumbers {
  size = 0;
  #sparse: Map<number, number> | undefined = new Map();
  /** The number plus one, 0 when there is none. */
  #dense = new Int32Array(0);
  #limit = 0;

  /** -1 for a stream that has none. */
  get(stream: number): number {
    if (this.#sparse !== undefined) return this.#sparse.get(stream) ?? -1;
    return stream < this.#dense.length ? this.#dense[stream]! - 1 : -1;
  }

  *keys(): Generator<number> {
    if (this.#sparse !== undefined) yield* this.#sparse.keys();
    for (let stream = 0; stream < this.#dense.length; stream++) {
      if (this.#dense[stream] !== 0) yield stream;
    }
  }

  set(stream: number, number: number): void {
    if (stream >= this.#limit) this.#limit = stream + 1;
    if (this.#sparse !== undefined) {
      this.#sparse.set(stream, number);
      this.size = this.#sparse.size;
      if (this.size > maxSparse && this.size * denseFrom >= this.#limit) this.#makeDense();
      return;
    }
    if (stream >= this.#dense.length) this.#dense = withRoom(this.#dense, stream + 1);
    if (this.#dense[stream] === 0) this.size++;
    this.#dense[stream] = number + 1;
  }

  #makeDense(): void {
    this.#dense = new Int32Array(this.#limit);
    for (const [stream, number] of this.#sparse ?? []) this.#dense[stream] = number + 1;
    this.#sparse = undefined;
  }
}

/** A copy of a column with room for at least `length` values, and at least twice as long. */
export function withRoom<T extends Int32Array | Uint32Array | Float64Array>(
  column: T,
  length: number,
): T {
  const longer = new (column.constructor as new (length: number) => T)(
    Math.max(length, 2 * column.length, 16),
  );
  longer.set(column);
  return longer;
}
