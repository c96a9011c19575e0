/**
 * Shared memory of heads that are sealed, for the next ones: the pages are there already, which saves the kernel's
 * clearing of a gigabyte per gigabyte pushed, and shared memory is freed late because the garbage collector does not
 * see its size. Only memory that nobody can read any more may come back.
 */
export class HeadMemory {
  readonly #maxBytes: number;
  /** By size. */
  readonly #free = new Map<number, SharedArrayBuffer[]>();
  #freeBytes = 0;
  #usedBytes = 0;

  constructor(options: { readonly maxBytes: number }) {
    this.#maxBytes = options.maxBytes;
  }

  /** Taken and not given back. */
  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** Kept for the next heads. */
  get freeBytes(): number {
    return this.#freeBytes;
  }

  /** Counts memory that heads hold elsewhere, or a negative number when they hold it no more. */
  count(bytes: number): void {
    this.#usedBytes += bytes;
  }

  /** Memory of at least this size, not cleared. */
  take(sizeBytes: number): SharedArrayBuffer {
    const wanted = roundUp(sizeBytes);
    for (let size = wanted; size <= 2 * wanted; size = roundUp(size + 1)) {
      const memory = this.#free.get(size)?.pop();
      if (memory === undefined) continue;
      this.#freeBytes -= size;
      this.#usedBytes += size;
      return memory;
    }
    this.#usedBytes += wanted;
    return new SharedArrayBuffer(wanted);
  }

  /** Takes memory back: to be used again, or only to be counted as gone, because a query may still read it. */
  give(memory: SharedArrayBuffer, reuse: boolean): void {
    this.#usedBytes -= memory.byteLength;
    if (!reuse || this.#freeBytes + memory.byteLength > this.#maxBytes) return;
    const alike = this.#free.get(memory.byteLength);
    if (alike === undefined) this.#free.set(memory.byteLength, [memory]);
    else alike.push(memory);
    this.#freeBytes += memory.byteLength;
  }
}

/** Steps of 1/8 of the size, so that blocks of like batches fit into each other's memory. */
function roundUp(sizeBytes: number): number {
  const step = Math.max(4096, 2 ** Math.floor(Math.log2(sizeBytes)) / 8);
  return Math.ceil(sizeBytes / step) * step;
}
