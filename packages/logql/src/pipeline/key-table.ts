import { readText } from "./row/bytes.js";

/** A hash table of byte keys, numbered as they come; a key is written first, then looked up or added. */
export class RowKey {
  #scratch = new Uint8Array(1024);
  #length = 0;
  #hash = 0;
  #keys = new Uint8Array(64 * 1024);
  #keysUsed = 0;
  readonly #start: number[] = [];
  readonly #lengths: number[] = [];
  readonly #hashes: number[] = [];
  /** Entry + 1; 0 = free. */
  #table = new Int32Array(1024);

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

  get count(): number {
    return this.#start.length;
  }

  /** The number of the key that was written, or -1. */
  find(): number {
    this.#hash = this.#hashKey();
    const mask = this.#table.length - 1;
    for (let at = this.#hash & mask; ; at = (at + 1) & mask) {
      const entry = this.#table[at]! - 1;
      if (entry < 0) return -1;
      if (this.#hashes[entry] === this.#hash && this.#isKey(entry)) return entry;
    }
  }

  /** Adds the key that `find` did not find; answers its number. */
  add(): number {
    const length = this.#length;
    if (this.#keysUsed + length > this.#keys.length) {
      const keys = new Uint8Array(Math.max(this.#keys.length * 2, this.#keysUsed + length));
      keys.set(this.#keys);
      this.#keys = keys;
    }
    this.#keys.set(this.#scratch.subarray(0, length), this.#keysUsed);
    this.#start.push(this.#keysUsed);
    this.#lengths.push(length);
    const entries = this.#hashes.push(this.#hash);
    this.#keysUsed += length;
    if (entries * 2 > this.#table.length) this.#rehash();
    else this.#place(entries - 1);
    return entries - 1;
  }

  /** Reads a key again, part by part as it was written. */
  read(entry: number): KeyReader {
    const start = this.#start[entry]!;
    return new KeyReader(this.#keys.subarray(start, start + this.#lengths[entry]!));
  }

  #place(entry: number): void {
    const mask = this.#table.length - 1;
    let at = this.#hashes[entry]! & mask;
    while (this.#table[at] !== 0) at = (at + 1) & mask;
    this.#table[at] = entry + 1;
  }

  #rehash(): void {
    this.#table = new Int32Array(this.#table.length * 2);
    for (let entry = 0; entry < this.#hashes.length; entry++) this.#place(entry);
  }

  #hashKey(): number {
    const key = this.#scratch;
    let hash = this.#length;
    for (let i = 0; i < this.#length; i++) hash = Math.imul(hash ^ key[i]!, 0x01000193);
    hash ^= hash >>> 15;
    return Math.imul(hash, 0x2c1b3c6d) & 0x7fffffff;
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
    if (this.#length + count <= this.#scratch.length) return;
    const larger = new Uint8Array(Math.max(this.#scratch.length * 2, this.#length + count));
    larger.set(this.#scratch);
    this.#scratch = larger;
  }
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
