import type { Batch } from "@skald/model";
import type { HeadBlock } from "@skald/storage";
import { equalsHeadRow, HashIndex, hashBatchRow, hashHeadRow } from "./row-hash.js";
import type { RunChains } from "./run-chains.js";

/** What the hashes read of a head. */
export interface HeadRows {
  readonly chains: RunChains;
  readonly blocks: readonly HeadBlock[];
}

/** The rows of one stream of a head by their hash; catches up with the head when it is asked. */
export class StreamHashes {
  readonly #stream: number;
  readonly #index = new HashIndex();
  /** The last run that was read, and the first row of its block that was not. */
  #run = -1;
  #row = 0;

  constructor(stream: number) {
    this.#stream = stream;
  }

  catchUp(head: HeadRows): void {
    const { chains, blocks } = head;
    const last = chains.lastRun(this.#stream);
    let lastEnd = this.#row;
    for (let run = last; run >= 0 && run >= this.#run; run = chains.runBefore(run)) {
      const index = chains.blockOf(run);
      const block = blocks[index] as HeadBlock;
      const { from, to } = rowsOfRun(block, run - chains.firstRun(index));
      const start = run === this.#run ? this.#row : from;
      for (let row = start; row < to; row++) {
        this.#index.add(hashHeadRow(block, row), packRow(index, row));
      }
      if (run === last) lastEnd = to;
    }
    this.#run = last;
    this.#row = lastEnd;
  }

  has(head: HeadRows, batch: Batch, row: number, time: number): boolean {
    return this.#index.some(hashBatchRow(batch, row, time), (packed) => {
      const block = head.blocks[packed >>> rowBits] as HeadBlock;
      const at = packed & rowMask;
      return block.columns.timestamps[at] === time && equalsHeadRow(batch, row, block, at);
    });
  }
}

/** A block has 65,536 rows at most, and a head far fewer blocks than the 32,767 that fit. */
const rowBits = 16;
const rowMask = 0xffff;

function packRow(block: number, row: number): number {
  return (block << rowBits) | row;
}

/** The rows `from .. to` of a run of a block. */
export function rowsOfRun(block: HeadBlock, run: number): { from: number; to: number } {
  const { runStart } = block.columns;
  const to = run + 1 < block.runCount ? runStart[run + 1]! : block.rowCount;
  return { from: runStart[run]!, to };
}
