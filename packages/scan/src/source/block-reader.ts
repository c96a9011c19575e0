import type { BlockStreams, ColumnNeeds, Findings } from "@skald/logql";
import { type Block, paddingBytes } from "@skald/model";
import {
  type BlockRange,
  type ColumnSelection,
  type PageMemory,
  type PageSet,
  SlotsMissing,
} from "@skald/storage";
import type { KeptBlocks } from "./kept-blocks.js";
import type { Source } from "./source.js";

/** Blocks whose pages are fetched with one read per column: about 4 MiB of raw lines. */
const maxBlocksAhead = 16;

/** Least bytes to ask for where pages are missing: a request costs as much time as some MiB. */
const minMissingBytes = 4 * 1024 * 1024;

/** Pages fetched together. */
interface Fetched {
  readonly pages: PageSet | undefined;
  readonly buffers: readonly Uint8Array[];
  /** Blocks that are still to be read. */
  left: number;
}

/** What every scan has besides its task. */
export interface ScanContext {
  /** Throws when the query was cancelled. Scans call it between blocks. */
  readonly check: () => void;
  /** Takes the decompressed pages; fresh memory takes them when absent. */
  readonly memory?: ScanMemory;
  /** Where blocks of small log queries are kept, if at all. */
  readonly kept?: KeptBlocks;
  /** Takes what a scan found in the blocks of a segment, for scans with the same stages. */
  readonly onFindings?: (place: string, findings: Findings) => void;
}

/** The needs of a scan that looks at times alone. */
export const onlyTimestamps: ColumnNeeds = { timestamps: true, lines: false, metadata: [] };

/** The columns that a scan needs, as storage names them. */
export function columnsOf({ lines, metadata, timestamps, fields }: ColumnNeeds): ColumnSelection {
  return { lines, timestamps, fields, metadata: metadata === true ? "all" : metadata };
}

/** Whether a scan needs the lines of a block. */
export function readsLines(
  source: Source,
  { lines, linesOf }: ColumnNeeds,
  block: number,
): boolean {
  if (!lines || linesOf === undefined) return lines;
  return linesOf(factsOf(source, block));
}

/** What is known of a block before it is read. */
export function factsOf(source: Source, block: number): BlockStreams {
  const facts = source.facts(block);
  const streams = source.runs(block).stream;
  return { facts, streams, labelNames: source.streams.names };
}

/**
 * Reads the blocks of a scan, and fetches the pages of neighbouring blocks together. It begins with single blocks and
 * doubles, because a scan with a limit may end after the first block. With a memory, the columns of a block are valid
 * until the next block is read.
 */
export class BlockReader {
  readonly #source: Source;
  readonly #needs: ColumnNeeds;
  readonly #memory: ScanMemory | undefined;
  /** Blocks of the scan whose pages are still to be fetched. */
  readonly #wanted: Set<number>;
  readonly #fetched = new Map<number, Fetched>();
  /** The memory of the block that was read last. */
  #buffers: Uint8Array[] = [];
  #ahead = 1;
  /** Stored bytes of columns read so far. */
  readBytes = 0;

  constructor(
    source: Source,
    needs: ColumnNeeds,
    wanted: readonly { readonly block: number }[],
    memory?: ScanMemory,
  ) {
    this.#source = source;
    this.#needs = needs;
    this.#wanted = new Set(wanted.map(({ block }) => block));
    this.#memory = memory;
  }

  /** Adds blocks to those of the scan. */
  want(blocks: readonly { readonly block: number }[]): void {
    for (const { block } of blocks) this.#wanted.add(block);
  }

  /** Reads a block of the scan. Each block can be read once. */
  read(block: number): Block {
    this.#release();
    const fetched = this.#fetched.get(block) ?? this.#fetch(block);
    this.#fetched.delete(block);
    fetched.left--;
    if (fetched.left === 0) this.#buffers.push(...fetched.buffers);
    return this.#source.block(block, fetched.pages, this.#recording(this.#buffers));
  }

  /** Whether the scan needs the lines of a block. */
  readsLines(block: number): boolean {
    return readsLines(this.#source, this.#needs, block);
  }

  /** Gives all memory back, that of the last block included. */
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
    const lines = this.readsLines(block);
    const isNext = (one: number) => this.#wanted.has(one) && this.readsLines(one) === lines;
    while (to - from < this.#ahead && isNext(to)) to++;
    while (to - from < this.#ahead && isNext(from - 1)) from--;
    const buffers: Uint8Array[] = [];
    const pages = this.#readPages({ from, to }, columnsOf({ ...this.#needs, lines }), buffers);
    this.readBytes += pages?.sizeBytes ?? 0;
    const fetched = { pages, buffers, left: to - from };
    for (let one = from; one < to; one++) {
      this.#wanted.delete(one);
      this.#fetched.set(one, fetched);
    }
    this.#ahead = Math.min(maxBlocksAhead, this.#ahead * 2);
    return fetched;
  }

  /** Throws SlotsMissing for missing pages and for as many bytes behind them as were read already. */
  #readPages(
    blocks: BlockRange,
    columns: ColumnSelection,
    buffers: Uint8Array[],
  ): PageSet | undefined {
    try {
      return this.#source.readPages(blocks, columns, this.#recording(buffers));
    } catch (error) {
      const { cached } = this.#source;
      if (cached === undefined || !(error instanceof SlotsMissing)) throw error;
      for (const buffer of buffers) this.#memory?.give(buffer);
      const asked = Array.from({ length: blocks.to - blocks.from }, (_, i) => blocks.from + i);
      const wanted = [...this.#wanted].filter((one) => this.readsLines(one) === columns.lines);
      const maxBytes = Math.max(minMissingBytes, this.readBytes);
      throw new SlotsMissing(cached.missing([...asked, ...wanted], columns, maxBytes));
    }
  }

  #release(): void {
    for (const buffer of this.#buffers) this.#memory?.give(buffer);
    this.#buffers = [];
  }

  /** The memory, which also notes what is taken from it. */
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

/** Free memory that is kept for the next block. */
const maxFreeBytes = 16 * 1024 * 1024;
const minBufferBytes = 16 * 1024;

/**
 * Buffers for the pages of scans, which one thread uses again and again: fresh memory from the system costs a page fault
 * per 4 KiB, as much as decompressing into it.
 */
export class ScanMemory implements PageMemory {
  /** Free buffers, by the exponent of their size. */
  readonly #free: ArrayBuffer[][] = [];
  #freeBytes = 0;

  /** Bytes that are kept for the next blocks. */
  get freeBytes(): number {
    return this.#freeBytes;
  }

  take(bytes: number): Uint8Array {
    const needed = Math.max(minBufferBytes, bytes + paddingBytes);
    const exponent = 32 - Math.clz32(needed - 1);
    const known = needed > maxFreeBytes ? undefined : this.#free[exponent]?.pop();
    if (known !== undefined) this.#freeBytes -= known.byteLength;
    const size = needed > maxFreeBytes ? needed : 2 ** exponent;
    return new Uint8Array(known ?? new ArrayBuffer(size), 0, bytes);
  }

  /** Takes back what `take` gave. Nothing may use it any more. */
  give(taken: Uint8Array): void {
    const buffer = taken.buffer as ArrayBuffer;
    const size = buffer.byteLength;
    if (size > maxFreeBytes || this.#freeBytes + size > maxFreeBytes) return;
    const exponent = 31 - Math.clz32(size);
    const free = this.#free[exponent] ?? [];
    free.push(buffer);
    this.#free[exponent] = free;
    this.#freeBytes += size;
  }
}
