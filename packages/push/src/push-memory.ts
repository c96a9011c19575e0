import { paddingBytes } from "@skald/model";

/** Buffers that wait for the next push take no more than this together; larger ones are left to the garbage. */
const maxFreeBytes = 64 * 1024 * 1024;
const maxBufferBytes = 4 * 1024 * 1024;
/** Room that a buffer has beyond what it was made for: the next push is not of the same size. */
const spare = 1.25;

/** Memory that one push is read and decoded into. */
export class PushMemory {
  readonly #buffers: Uint8Array<ArrayBuffer>[] = [];
  #taken = 0;

  /** So many bytes of arbitrary content, at the start of a buffer, with padding behind them. */
  take(length: number): Uint8Array<ArrayBuffer> {
    const at = this.#taken++;
    let buffer = this.#buffers[at];
    if (buffer === undefined || buffer.length < length + paddingBytes) {
      buffer = new Uint8Array(Math.ceil(length * spare) + paddingBytes);
      this.#buffers[at] = buffer;
    }
    return buffer.subarray(0, length);
  }

  /** Makes all of it free again; gives the bytes that are kept. */
  reset(): number {
    this.#taken = 0;
    const kept = this.#buffers.filter(({ length }) => length <= maxBufferBytes);
    this.#buffers.splice(0, this.#buffers.length, ...kept);
    return kept.reduce((sum, { length }) => sum + length, 0);
  }
}

/**
 * Memory of pushes, used again and again. New buffers for each would be most of the garbage of a server that ingests, and
 * the collector, which looks through all heads' books for them, its largest cost.
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

  /** Takes memory back that nobody looks at any more. */
  give(memory: PushMemory): void {
    const bytes = memory.reset();
    if (this.#freeBytes + bytes > maxFreeBytes) return;
    this.#freeBytes += bytes;
    this.#free.push({ memory, bytes });
  }
}
