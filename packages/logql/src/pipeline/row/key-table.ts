import { grown } from "@skald/kernels";
import { fnv1aBytes, invalidArgument } from "@skald/model";
import { readText } from "./bytes.js";

/** A hash table of byte keys, numbered as they come; a key is written first, then looked up or added. */
export class KeyTable {
  #scratch = new Uint8Array(1024);
  #length = 0;
  #keys = new Uint8Array(4 * 1024);
  #keysUsed = 0;
  readonly #start: number[] = [];
  readonly #lengths: number[] = [];
  readonly #index = new HashIndex();
  readonly #maxBytes: number;

  constructor(maxBytes = Number.POSITIVE_INFINITY) {
    this.#maxBytes = maxBytes;
  }

  begin(): void {
    this.#length = 0;
  }

  putInt(value: number): void {
    this.#room(4);
    const out = this.#scratch;
    const at = this.#length;
    out[at] = value;
    out[at + 1] = value >>> 8;
    out[at + 2] = value >>> 16;
    out[at + 3] = value >>> 24;
    this.#length = at + 4;
  }

  putBytes(bytes: Uint8Array, start: number, end: number): void {
    const count = end - start;
    this.putInt(count);
    this.#room(count);
    const out = this.#scratch;
    let at = this.#length;
    if (count > 64) {
      out.set(bytes.subarray(start, end), at);
      at += count;
    } else for (let i = start; i < end; i++) out[at++] = bytes[i]!;
    this.#length = at;
  }

  putText(text: string): void {
    this.putInt(text.length);
    this.#room(text.length * 2);
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      this.#scratch[this.#length++] = code;
      this.#scratch[this.#length++] = code >>> 8;
    }
  }

  /** The number of the key that was written, or -1. */
  find(): number {
    const hash = fnv1aBytes(this.#scratch, 0, this.#length, this.#length);
    let entry = this.#index.first(mixed(hash));
    while (entry >= 0 && !(this.#index.hasHash(entry) && this.#isKey(entry))) {
      entry = this.#index.next();
    }
    return entry;
  }

  /** Adds the key that `find` did not find; answers its number. Throws invalid_argument when keys take too many bytes. */
  add(): number {
    const length = this.#length;
    const used = this.#keysUsed + length;
    if (used > this.#maxBytes) throw tooManyBytes(this.#maxBytes);
    if (used > this.#keys.length) {
      this.#keys = grown(this.#keys, Math.max(this.#keys.length * 2, used));
    }
    this.#keys.set(this.#scratch.subarray(0, length), this.#keysUsed);
    this.#start.push(this.#keysUsed);
    this.#lengths.push(length);
    this.#keysUsed = used;
    return this.#index.add();
  }

  /** Reads a key again, part by part as it was written. */
  read(entry: number): KeyReader {
    const start = this.#start[entry]!;
    return new KeyReader(this.#keys.subarray(start, start + this.#lengths[entry]!));
  }

  #isKey(entry: number): boolean {
    if (this.#lengths[entry] !== this.#length) return false;
    const from = this.#start[entry]!;
    const keys = this.#keys;
    const scratch = this.#scratch;
    for (let i = 0; i < this.#length; i++) if (keys[from + i] !== scratch[i]) return false;
    return true;
  }

  #room(count: number): void {
    const used = this.#length + count;
    if (used <= this.#scratch.length) return;
    this.#scratch = grown(this.#scratch, Math.max(this.#scratch.length * 2, used));
  }
}

/** Spreads the upper bits of a hash of long keys to the lower ones, which choose the place in a table. */
function mixed(hash: number): number {
  return Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
}

/** The parts of a key in the order of writing. */
export class KeyReader {
  readonly #key: Uint8Array;
  #at = 0;

  constructor(key: Uint8Array) {
    this.#key = key;
  }

  get atEnd(): boolean {
    return this.#at >= this.#key.length;
  }

  int(): number {
    const key = this.#key;
    const at = this.#at;
    this.#at = at + 4;
    return key[at]! | (key[at + 1]! << 8) | (key[at + 2]! << 16) | (key[at + 3]! << 24);
  }

  /** What `putBytes` wrote, as text. */
  value(): string {
    const length = this.int();
    const start = this.#at;
    this.#at = start + length;
    return readText(this.#key, start, this.#at);
  }

  /** What `putText` wrote. */
  text(): string {
    const length = this.int();
    let text = "";
    for (let i = 0; i < length; i++) {
      text += String.fromCharCode(this.#key[this.#at]! | (this.#key[this.#at + 1]! << 8));
      this.#at += 2;
    }
    return text;
  }
}

function tooManyBytes(limit: number): Error {
  return invalidArgument(
    `the labels of the answer take more than ${limit} bytes; narrow the query, or drop labels that many values have`,
  );
}

const initialSlots = 512;

/**
 * Finds entries by their hashes: open addressing over entries numbered from 0 in the order of `add`. The keys stay with
 * the caller, which compares them: `for (let e = index.first(hash); e >= 0; e = index.next()) if (isEqual(e)) ...`.
 */
export class HashIndex {
  count = 0;
  /** Entry + 1; 0 = free. At most half of them are taken. */
  #slots = new Int32Array(initialSlots);
  /** By entry. */
  #hashes = new Int32Array(initialSlots / 2);
  #hash = 0;
  #slot = 0;

  /** The first entry that may have the key of this hash (32 bits, well mixed), or -1. */
  first(hash: number): number {
    this.#hash = hash;
    this.#slot = hash & (this.#slots.length - 1);
    return this.#slots[this.#slot]! - 1;
  }

  /** The next entry that may have the key of the last `first`, or -1. */
  next(): number {
    this.#slot = (this.#slot + 1) & (this.#slots.length - 1);
    return this.#slots[this.#slot]! - 1;
  }

  /** True when the entry has the hash of the last `first`: worth asking before long keys are compared. */
  hasHash(entry: number): boolean {
    return this.#hashes[entry] === (this.#hash | 0);
  }

  /** Adds the key of the last `first`, once that or `next` answered -1; answers its number. */
  add(): number {
    const entry = this.count++;
    this.#slots[this.#slot] = entry + 1;
    this.#hashes[entry] = this.#hash;
    if (this.count === this.#hashes.length) this.#grow();
    return entry;
  }

  #grow(): void {
    this.#hashes = grown(this.#hashes, this.#hashes.length * 2);
    const slots = new Int32Array(this.#slots.length * 2);
    const mask = slots.length - 1;
    for (let entry = 0; entry < this.count; entry++) {
      let slot = this.#hashes[entry]! & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = entry + 1;
    }
    this.#slots = slots;
  }
}
