import { grown } from "@skald/kernels";

/** Most values of a dictionary, and most bytes of them: readers keep what they decoded of it. */
const maxValues = 2 ** 14;
const maxBytes = 256 * 1024;

/** Numbers the different values of a column from 1 on, in the order in which they come; 0 stands for no value. */
export class ValueTable {
  count = 0;
  /** Value n is `bytes[offsets[n] .. offsets[n + 1])`, the first at n = 1. */
  bytes = new Uint8Array(1024);
  offsets = new Uint32Array(64);
  /** Numbers by hash. */
  #slots = new Uint16Array(64);
  /** The hash of each value, by its number. */
  #hashes = new Uint32Array(64);
  /** The value that came last. */
  #last = 0;

  /** Bytes of the values. */
  get byteCount(): number {
    return this.offsets[this.count + 1]!;
  }

  clear(): void {
    this.count = 0;
    this.offsets[1] = 0;
    this.#last = 0;
    this.#slots.fill(0);
  }

  /** The number of a value that is not empty; 0 when there is no room for another. */
  codeOf(bytes: Uint8Array, start: number, end: number): number {
    if (this.#is(this.#last, bytes, start, end)) return this.#last;
    const mask = this.#slots.length - 1;
    const hash = hashOf(bytes, start, end);
    let slot = hash & mask;
    let code = this.#slots[slot]!;
    while (code > 0 && !(this.#hashes[code] === hash && this.#is(code, bytes, start, end))) {
      slot = (slot + 1) & mask;
      code = this.#slots[slot]!;
    }
    if (code === 0) {
      code = this.#add(bytes, start, end);
      if (code === 0) return 0;
      this.#hashes[code] = hash;
      this.#slots[slot] = code;
      if (code * 2 > mask) this.#grow();
    }
    this.#last = code;
    return code;
  }

  #is(code: number, bytes: Uint8Array, start: number, end: number): boolean {
    const from = this.offsets[code]!;
    if (this.offsets[code + 1]! - from !== end - start) return false;
    for (let at = start, own = from; at < end; at++, own++)
      if (bytes[at] !== this.bytes[own]) return false;
    return true;
  }

  #add(bytes: Uint8Array, start: number, end: number): number {
    const from = this.byteCount;
    const to = from + end - start;
    if (this.count === maxValues || to > maxBytes) return 0;
    if (to > this.bytes.length) this.bytes = grown(this.bytes, Math.max(to, this.bytes.length * 2));
    const code = ++this.count;
    if (code + 2 > this.offsets.length) {
      this.offsets = grown(this.offsets, this.offsets.length * 2);
      this.#hashes = grown(this.#hashes, this.#hashes.length * 2);
    }
    for (let at = start, own = from; at < end; at++, own++) this.bytes[own] = bytes[at]!;
    this.offsets[code + 1] = to;
    return code;
  }

  #grow(): void {
    const slots = new Uint16Array(this.#slots.length * 2);
    const mask = slots.length - 1;
    for (let code = 1; code <= this.count; code++) {
      let slot = this.#hashes[code]! & mask;
      while (slots[slot]! > 0) slot = (slot + 1) & mask;
      slots[slot] = code;
    }
    this.#slots = slots;
  }
}

function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = end - start;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ bytes[at]!, 0x01000193);
  return (hash ^ (hash >>> 15)) >>> 0;
}
