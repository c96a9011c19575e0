import { paddingBytes } from "@skald/model";
import type { PageMemory } from "@skald/storage";

/** Memory that is free and kept for the next block. */
const maxFreeBytes = 16 * 1024 * 1024;
const minBufferBytes = 16 * 1024;

/**
 * Buffers for the pages of scans, used again and again by one thread: memory that is fresh from the system costs a
 * page fault per 4 KiB, as much as decompressing into it.
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

  /** Takes back what `take` gave: nothing may look at it any more. */
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
