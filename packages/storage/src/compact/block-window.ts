import type { MoreNumbers, PairedBlock } from "../seal/more-rows.js";
import { type RowBlocks, type SealBlock, sealBlock } from "../seal/open-heads.js";
import type { NameSplit } from "../segment/layout.js";

/**
 * The blocks of a merge that are in memory, by number; a number is used again once no row of its block is needed. Rows that
 * were handed on are needed until the block that they go to is written, so a block that was passed stays till then.
 */
export class BlockWindow implements RowBlocks {
  readonly blocks: SealBlock[] = [];
  readonly metadataNames: NameSplit;
  readonly #more: MoreNumbers;
  #free: number[] = [];
  #passed: number[] = [];
  #passing: number[] = [];

  constructor(metadataNames: NameSplit, more: MoreNumbers) {
    this.metadataNames = metadataNames;
    this.#more = more;
  }

  /** Blocks that are held. */
  get size(): number {
    return this.blocks.length - this.#free.length;
  }

  /** Reads the columns of a block and numbers it. */
  add(block: PairedBlock): number {
    const number = this.#free.pop() ?? this.blocks.length;
    this.blocks[number] = sealBlock(block, this.metadataNames, this.#more);
    return number;
  }

  /** No row of the block follows those that are being handed on. */
  pass(number: number): void {
    this.#passing.push(number);
  }

  /** The rows that were taken are handed on. */
  endRound(): void {
    for (const number of this.#passing) this.#passed.push(number);
    this.#passing.length = 0;
  }

  /** All rows that were handed on in earlier rounds are written. */
  release(): void {
    for (const number of this.#passed) {
      this.blocks[number] = nothing;
      this.#free.push(number);
    }
    this.#passed = [];
  }
}

const noBytes = { bytes: new Uint8Array(0), offsets: new Uint32Array(1) };

const nothing: SealBlock = {
  timestamps: new Float64Array(0),
  lines: noBytes,
  lineBuffer: Buffer.alloc(0),
  metadata: new Map(),
  more: { start: new Uint32Array(1), names: new Uint32Array(0), ...noBytes },
};
