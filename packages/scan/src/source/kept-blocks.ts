import type { Block } from "@skald/model";
import type { Source } from "./source.js";

/** Decoded blocks that one thread keeps. */
const maxKeptBytes = 8 * 1024 * 1024;
/** A larger block is not kept: it would push out many others. */
const maxBlockBytes = maxKeptBytes / 4;
/** What a row takes besides its line: its time and where the line begins. */
const rowBytes = 12;

/** Reads blocks, and counts the stored bytes of what it read. */
interface CountingReader {
  readBytes: number;
  read(block: number): Block;
}

interface Kept {
  readonly source: Source;
  readonly block: Block;
  readonly bytes: number;
  /** Stored bytes that were read for it. */
  readonly readBytes: number;
}

/**
 * The blocks that small log queries read last, decoded, on one thread: panels and tails that are asked again and again
 * need neither a read nor zstd. Sealed blocks never change. The caller forgets those of a source that it closes.
 */
export class KeptBlocks {
  /** By block and source, the least recently used first. */
  readonly #kept = new Map<string, Kept>();
  #bytes = 0;

  /** Bytes of the blocks that are kept, roughly. */
  get bytes(): number {
    return this.#bytes;
  }

  has(source: Source, block: number): boolean {
    return this.#kept.get(keyOf(source, block))?.source === source;
  }

  /** Runs `use` over a block that is kept, or over one that the reader reads, and keeps it. The reader must not reuse memory. */
  read(source: Source, block: number, reader: CountingReader, use: (block: Block) => void): void {
    const key = keyOf(source, block);
    const known = this.#kept.get(key);
    if (known?.source === source) {
      this.#kept.delete(key);
      this.#kept.set(key, known);
      reader.readBytes += known.readBytes;
      use(known.block);
      return;
    }
    const before = reader.readBytes;
    const read = reader.read(block);
    const readBytes = reader.readBytes - before;
    use(read);
    const bytes = read.lines().bytes.byteLength + read.rowCount * rowBytes + readBytes;
    if (source.kind === "head" || bytes > maxBlockBytes) return;
    this.#remove(key);
    this.#kept.set(key, { source, block: read, bytes, readBytes });
    this.#bytes += bytes;
    for (const oldest of this.#kept.keys()) {
      if (this.#bytes <= maxKeptBytes) break;
      this.#remove(oldest);
    }
  }

  forget(source: Source): void {
    for (const [key, kept] of this.#kept) if (kept.source === source) this.#remove(key);
  }

  #remove(key: string): void {
    this.#bytes -= this.#kept.get(key)?.bytes ?? 0;
    this.#kept.delete(key);
  }
}

function keyOf({ id }: Source, block: number): string {
  return `${block} ${id}`;
}
