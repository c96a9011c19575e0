import type { Batch, BatchStream } from "@skald/model";
import { equalBatchRows, HashIndex, hashBatchRow } from "../head/row-hash.js";

/** Rows of equal times that are compared one by one; beyond that all rows are hashed. */
const maxCompared = 32;

/**
 * Tells whether a stream of a batch has a row that an earlier row of it equals. While times do not fall, only the rows
 * of the same time right before are compared; after that, or with many equal times, rows are hashed.
 */
export class BatchDuplicates {
  readonly #batch: Batch;
  readonly #rowStart: number;
  #hashes: HashIndex | undefined;
  #hashedTo: number;
  #falls = false;

  constructor(batch: Batch, stream: BatchStream) {
    this.#batch = batch;
    this.#rowStart = stream.rowStart;
    this.#hashedTo = stream.rowStart;
  }

  /** To be told of each row that is older than the row before it. */
  fall(): void {
    this.#falls = true;
  }

  /** Asked for rows in ascending order. */
  has(row: number): boolean {
    if (this.#hashes === undefined && !this.#falls) {
      const found = this.#compareBack(row);
      if (found !== undefined) return found;
    }
    return this.#lookUp(row);
  }

  /** undefined when too many rows have the time. */
  #compareBack(row: number): boolean | undefined {
    const batch = this.#batch;
    const end = Math.max(this.#rowStart, row - maxCompared);
    for (let other = row - 1; other >= end; other--) {
      if (!this.#sameTime(other, row)) return false;
      if (equalBatchRows(batch, other, row)) return true;
    }
    return end === this.#rowStart ? false : undefined;
  }

  #lookUp(row: number): boolean {
    const batch = this.#batch;
    this.#hashes ??= new HashIndex();
    for (; this.#hashedTo < row; this.#hashedTo++) {
      this.#hashes.add(this.#hash(this.#hashedTo), this.#hashedTo);
    }
    return this.#hashes.some(
      this.#hash(row),
      (other) => this.#sameTime(other, row) && equalBatchRows(batch, other, row),
    );
  }

  #sameTime(a: number, b: number): boolean {
    const { seconds, nanos } = this.#batch;
    return seconds[a] === seconds[b] && nanos[a] === nanos[b];
  }

  #hash(row: number): number {
    const { seconds, nanos } = this.#batch;
    return hashBatchRow(this.#batch, row, (seconds[row]! % 86_400) * 1e9 + nanos[row]!);
  }
}
