import type { Batch } from "@skald/model";
import type { HeadBlock } from "@skald/storage";
import type { Head } from "../head/head.js";
import { equalsHeadRow } from "../head/row-hash.js";
import { rowsOfRun, StreamHashes } from "../head/stream-hashes.js";

/** What one stream of one push may look through before its rows are hashed instead. */
const maxSteps = 20_000;

/**
 * Tells whether a head has a row already. Looks back through the runs of the stream that reach the row's time, which for
 * rows in order is the last one; where that would take long (rows far out of order, many equal times) all rows of
 * the stream are hashed once, and from then on each costs a look-up.
 */
export class HeadDuplicates {
  readonly #head: Head;
  readonly #stream: number;
  readonly #batch: Batch;
  #stepsLeft = maxSteps;

  constructor(head: Head, stream: number, batch: Batch) {
    this.#head = head;
    this.#stream = stream;
    this.#batch = batch;
  }

  /** `time` is that of the row, ns since the start of the head's day. */
  has(row: number, time: number): boolean {
    if (this.#head.hashed.has(this.#stream)) return this.#lookUp(row, time);
    const found = this.#search(row, time);
    return found ?? this.#lookUp(row, time);
  }

  /** undefined when the search has taken too many steps. */
  #search(row: number, time: number): boolean | undefined {
    const { chains, blocks } = this.#head;
    for (let run = chains.lastRun(this.#stream); run >= 0; run = chains.runBefore(run)) {
      if (--this.#stepsLeft < 0) return undefined;
      const index = chains.blockOf(run);
      const block = blocks[index] as HeadBlock;
      const { runMin, runMax, timestamps } = block.columns;
      const inBlock = run - chains.firstRun(index);
      if (time >= runMin[inBlock]! && time <= runMax[inBlock]!) {
        const { from, to } = rowsOfRun(block, inBlock);
        this.#stepsLeft -= (to - from) >> 3;
        for (let at = to - 1; at >= from; at--) {
          if (timestamps[at] !== time) continue;
          if (equalsHeadRow(this.#batch, row, block, at)) return true;
          this.#stepsLeft -= 8;
        }
      }
      if (time > chains.maxBefore(run)) return false;
    }
    return false;
  }

  #lookUp(row: number, time: number): boolean {
    let index = this.#head.hashed.get(this.#stream);
    if (index === undefined) {
      index = new StreamHashes(this.#stream);
      this.#head.hashed.set(this.#stream, index);
    }
    index.catchUp(this.#head);
    return index.has(this.#head, this.#batch, row, time);
  }
}
