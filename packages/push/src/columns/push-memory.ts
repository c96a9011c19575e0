import { freeBuffer, paddingBytes } from "@skald/model";

/** Buffers that are kept take at most this much together, and one this much. */
const maxFreeBytes = 64 * 1024 * 1024;
const maxBufferBytes = 4 * 1024 * 1024;
/** A buffer is larger than its first user needs, because the next push has another size. */
const spare = 1.25;

/** The memory of one push, for its body and for its columns. */
export class PushMemory {
  readonly #buffers: Uint8Array<ArrayBuffer>[] = [];
  #taken = 0;

  /** Returns `length` bytes of arbitrary content at the start of a buffer, with padding behind them. */
  take(length: number): Uint8Array<ArrayBuffer> {
    const at = this.#taken++;
    let buffer = this.#buffers[at];
    if (buffer === undefined || buffer.length < length + paddingBytes) {
      if (buffer !== undefined) freeBuffer(buffer);
      buffer = Buffer.allocUnsafeSlow(Math.ceil(length * spare) + paddingBytes);
      this.#buffers[at] = buffer;
    }
    return buffer.subarray(0, length);
  }

  /** Whether bytes lie in this memory. Their buffer may be moved to another thread, whole; the next push gets another one. */
  holds(bytes: Uint8Array): boolean {
    return this.#buffers.some(({ buffer }) => buffer === bytes.buffer);
  }

  /** Lets the next push have buffers of up to this size, and gives the others back; returns how many bytes stay allocated. */
  reset(maxBytes = maxBufferBytes): number {
    this.#taken = 0;
    for (const buffer of this.#buffers) if (buffer.length > maxBytes) freeBuffer(buffer);
    const kept = this.#buffers.filter(({ length }) => length > 0 && length <= maxBytes);
    this.#buffers.splice(0, this.#buffers.length, ...kept);
    return kept.reduce((sum, { length }) => sum + length, 0);
  }
}

/**
 * Reuses the memory of pushes. New buffers for each push would be most of the garbage of a server that ingests, and
 * collecting it, which visits the arrays of all heads, would be the largest cost.
 */
export class PushMemoryPool {
  readonly #free: { readonly memory: PushMemory; readonly bytes: number }[] = [];
  #freeBytes = 0;

  take(): PushMemory {
    const last = this.#free.pop();
    if (last === undefined) return new PushMemory();
    this.#freeBytes -= last.bytes;
    return last.memory;
  }

  /** Takes back memory that nobody reads any more. */
  give(memory: PushMemory): void {
    const bytes = memory.reset();
    if (this.#freeBytes + bytes > maxFreeBytes) {
      memory.reset(0);
      return;
    }
    this.#freeBytes += bytes;
    this.#free.push({ memory, bytes });
  }
}
