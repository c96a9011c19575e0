import type { ColumnNeeds } from "@skald/logql";
import type { Block } from "@skald/model";
import type { ColumnSelection, PageSet } from "./segment.js";
import type { Source } from "./source.js";

/** Blocks whose pages are fetched by one read per column: about 4 MiB of raw lines. */
const maxBlocksAhead = 16;

/**
 * Reads the blocks of a scan, fetching the pages of neighbouring ones together. It begins with single blocks and
 * doubles, because a scan with a limit may end after the first.
 */
export class BlockReader {
  readonly #source: Source;
  readonly #columns: ColumnSelection;
  /** Blocks of the scan that were not fetched yet. */
  readonly #wanted: Set<number>;
  readonly #fetched = new Map<number, PageSet | undefined>();
  #ahead = 1;

  constructor(source: Source, needs: ColumnNeeds, wanted: readonly { readonly block: number }[]) {
    this.#source = source;
    this.#columns = { ...needs, metadata: needs.metadata === true ? "all" : needs.metadata };
    this.#wanted = new Set(wanted.map(({ block }) => block));
  }

  /** Each block of the scan may be read once. */
  read(block: number): Block {
    if (!this.#fetched.has(block)) this.#fetch(block);
    const pages = this.#fetched.get(block);
    this.#fetched.delete(block);
    return this.#source.block(block, pages);
  }

  #fetch(block: number): void {
    let from = block;
    let to = block + 1;
    while (to - from < this.#ahead && this.#wanted.has(to)) to++;
    while (to - from < this.#ahead && this.#wanted.has(from - 1)) from--;
    const pages = this.#source.readPages({ from, to }, this.#columns);
    for (let fetched = from; fetched < to; fetched++) {
      this.#wanted.delete(fetched);
      this.#fetched.set(fetched, pages);
    }
    this.#ahead = Math.min(maxBlocksAhead, this.#ahead * 2);
  }
}
