import type { ColumnNeeds } from "@skald/logql";
import type { Block } from "@skald/model";
import {
  type BlockRange,
  type ColumnSelection,
  type PageMemory,
  type PageSet,
  SlotsMissing,
} from "@skald/storage";
import type { ScanMemory } from "../source/page-memory.js";
import type { Source } from "../source/source.js";
import { withLazyMetadata } from "./lazy-metadata.js";

/** Blocks whose pages are fetched by one read per column: about 4 MiB of raw lines. */
const maxBlocksAhead = 16;

/** Where pages are missing, at least this much is asked for: a request costs as much time as some MiB. */
const minMissingBytes = 4 * 1024 * 1024;

/** Pages fetched together. */
interface Fetched {
  readonly pages: PageSet | undefined;
  readonly buffers: readonly Uint8Array[];
  /** Blocks that were not read yet. */
  left: number;
}

/**
 * Reads the blocks of a scan, fetching the pages of neighbouring ones together. It begins with single blocks and
 * doubles, because a scan with a limit may end after the first. With a memory the columns of a block are valid until
 * the next one is read.
 */
export class BlockReader {
  readonly #source: Source;
  readonly #columns: ColumnSelection;
  readonly #memory: ScanMemory | undefined;
  /** Blocks of the scan that were not fetched yet. */
  readonly #wanted: Set<number>;
  readonly #fetched = new Map<number, Fetched>();
  /** What the last block read lies in. */
  #buffers: Uint8Array[] = [];
  #ahead = 1;
  /** Stored bytes that were read so far. */
  #readBytes = 0;

  constructor(
    source: Source,
    needs: ColumnNeeds,
    wanted: readonly { readonly block: number }[],
    memory?: ScanMemory,
  ) {
    this.#source = source;
    this.#columns = { ...needs, metadata: needs.metadata === true ? "all" : needs.metadata };
    this.#wanted = new Set(wanted.map(({ block }) => block));
    this.#memory = memory;
  }

  /** Each block of the scan may be read once. */
  read(block: number): Block {
    this.#release();
    const fetched = this.#fetched.get(block) ?? this.#fetch(block);
    this.#fetched.delete(block);
    fetched.left--;
    if (fetched.left === 0) this.#buffers.push(...fetched.buffers);
    const read = this.#source.block(block, fetched.pages, this.#recording(this.#buffers));
    return this.#source.kind === "segment" ? withLazyMetadata(read) : read;
  }

  /** Gives all memory back; the last block is gone too. */
  close(): void {
    this.#release();
    for (const fetched of new Set(this.#fetched.values())) {
      for (const buffer of fetched.buffers) this.#memory?.give(buffer);
    }
    this.#fetched.clear();
  }

  #fetch(block: number): Fetched {
    let from = block;
    let to = block + 1;
    while (to - from < this.#ahead && this.#wanted.has(to)) to++;
    while (to - from < this.#ahead && this.#wanted.has(from - 1)) from--;
    const buffers: Uint8Array[] = [];
    const pages = this.#readPages({ from, to }, buffers);
    this.#readBytes += pages?.sizeBytes ?? 0;
    const fetched = { pages, buffers, left: to - from };
    for (let one = from; one < to; one++) {
      this.#wanted.delete(one);
      this.#fetched.set(one, fetched);
    }
    this.#ahead = Math.min(maxBlocksAhead, this.#ahead * 2);
    return fetched;
  }

  /** What is missing is asked for together with as much of what follows as was read already. */
  #readPages(blocks: BlockRange, buffers: Uint8Array[]): PageSet | undefined {
    try {
      return this.#source.readPages(blocks, this.#columns, this.#recording(buffers));
    } catch (error) {
      const { cached } = this.#source;
      if (cached === undefined || !(error instanceof SlotsMissing)) throw error;
      for (const buffer of buffers) this.#memory?.give(buffer);
      const next = [...numbersOf(blocks), ...this.#wanted];
      const maxBytes = Math.max(minMissingBytes, this.#readBytes);
      throw new SlotsMissing(cached.missing(next, this.#columns, maxBytes));
    }
  }

  #release(): void {
    for (const buffer of this.#buffers) this.#memory?.give(buffer);
    this.#buffers = [];
  }

  /** The memory, writing down what is taken of it. */
  #recording(taken: Uint8Array[]): PageMemory | undefined {
    const memory = this.#memory;
    if (memory === undefined) return undefined;
    return {
      take: (bytes) => {
        const buffer = memory.take(bytes);
        taken.push(buffer);
        return buffer;
      },
    };
  }
}

function numbersOf({ from, to }: BlockRange): number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}
