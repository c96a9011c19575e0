import { copyBytes, paddingBytes, tooLarge } from "../shared/bytes.js";
import { type KernelExports, type WebAssemblyApi, webAssembly } from "./abi.js";

/** A memory above this is given back when the call that needed it is over. */
export const maxKeptBytes = 16 * 1024 * 1024;

const pageBytes = 65536;
const maxMemoryBytes = 4 * 1024 * 1024 * 1024 - pageBytes;

/**
 * The memory of the compiled kernels of one thread. A call takes ranges one behind the other, each with padding
 * behind it, and leaves nothing behind: kernels keep no state. Linear memory cannot shrink, so after a giant input
 * the instance is dropped and the next call makes a new one.
 */
export class KernelMemory {
  readonly #api: WebAssemblyApi;
  readonly #module: object;
  #exports: KernelExports | undefined;
  #bytes = new Uint8Array(0);
  #dataEnd = 0;
  #top = 0;

  constructor(module: object, api: WebAssemblyApi | undefined = webAssembly) {
    if (api === undefined) throw new Error("this runtime has no webassembly");
    this.#api = api;
    this.#module = module;
  }

  /** Size of the linear memory, 0 while there is no instance. */
  get sizeBytes(): number {
    return this.#exports?.memory.buffer.byteLength ?? 0;
  }

  /** The kernels; a call begins here, and what an earlier one took is forgotten. */
  open(): KernelExports {
    let exports = this.#exports;
    if (exports === undefined) {
      exports = new this.#api.Instance(this.#module, {}).exports as KernelExports;
      this.#exports = exports;
      this.#dataEnd = exports.dataEnd();
      this.#bytes = new Uint8Array(exports.memory.buffer);
    }
    this.#top = this.#dataEnd;
    return exports;
  }

  /** The kernels of the call that is open. */
  exports(): KernelExports {
    if (this.#exports === undefined) throw new Error("kernel memory is not open");
    return this.#exports;
  }

  /** Ends a call: a memory that has become too large is dropped. */
  close(): void {
    if (this.#bytes.length <= maxKeptBytes) return;
    this.#exports = undefined;
    this.#bytes = new Uint8Array(0);
  }

  /** Where the next range begins; give it to `release` to take the ranges from there on again. */
  get mark(): number {
    return this.#top;
  }

  release(mark: number): void {
    this.#top = mark;
  }

  /** Takes a range of the memory, at a multiple of 16 and with padding behind it; its content is arbitrary. */
  take(length: number): number {
    const start = Math.ceil(this.#top / 16) * 16;
    const end = start + length + paddingBytes;
    if (end > this.#bytes.length) this.#grow(end);
    this.#top = end;
    return start;
  }

  /** Takes a range for the bytes, copies them there and zeroes the padding. */
  copyIn(bytes: Uint8Array): number {
    const start = this.take(bytes.length);
    const end = start + bytes.length;
    copyBytes(bytes, 0, bytes.length, this.#bytes, start);
    this.#bytes.fill(0, end, end + paddingBytes);
    return start;
  }

  /** Takes a range for the first `count` values and copies them there. */
  copyInWords(words: Uint32Array, count: number): number {
    return this.copyIn(new Uint8Array(words.buffer, words.byteOffset, count * 4));
  }

  /** The bytes of a range: a view that is gone when the memory grows. */
  bytes(start: number, length: number): Uint8Array {
    return this.#bytes.subarray(start, start + length);
  }

  words(start: number, count: number): Uint32Array {
    return new Uint32Array(this.#bytes.buffer, start, count);
  }

  doubles(start: number, count: number): Float64Array {
    return new Float64Array(this.#bytes.buffer, start, count);
  }

  #grow(end: number): void {
    const { memory } = this.exports();
    const size = this.#bytes.length;
    // A quarter more than asked for, so that many small growths do not follow each other.
    const wanted = Math.min(maxMemoryBytes, Math.max(end, Math.min(end * 1.25, maxKeptBytes)));
    if (end > wanted)
      throw tooLarge(`input needs ${end} bytes of kernel memory; send smaller pieces`);
    try {
      memory.grow(Math.ceil((wanted - size) / pageBytes));
    } catch {
      throw tooLarge(`no memory for an input that needs ${end} bytes; send smaller pieces`);
    }
    this.#bytes = new Uint8Array(memory.buffer);
  }
}
