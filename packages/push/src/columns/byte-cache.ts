import { copyBytes, grown } from "@skald/kernels";

/**
 * A bounded cache keyed by byte strings, so that a known text costs one lookup and no string. A key belongs to an
 * owner object: another owner never sees it.
 *
 * Two generations make it nearly LRU in constant time: a full young one replaces the old one, and an old entry that is
 * used becomes young again. Two keys with one hash cost a miss, never a wrong answer and never a chain.
 */
export class ByteCache<T> {
  readonly #maxEntries: number;
  readonly #maxKeyBytes: number;
  #young = new Generation<T>();
  #old = new Generation<T>();

  /** Keeps at most `maxEntries` keys, of `maxKeyBytes` bytes together. */
  constructor(bounds: { maxEntries: number; maxKeyBytes: number }) {
    this.#maxEntries = bounds.maxEntries;
    this.#maxKeyBytes = bounds.maxKeyBytes;
  }

  get(owner: object, bytes: Uint8Array, start: number, length: number): T | undefined {
    const hash = hashWords(bytes, start, length);
    const young = this.#young.entries.get(hash);
    if (young !== undefined) {
      return matches(young, this.#young, owner, bytes, start, length) ? young.value : undefined;
    }
    const old = this.#old.entries.get(hash);
    if (old === undefined || !matches(old, this.#old, owner, bytes, start, length)) {
      return undefined;
    }
    this.#insert(hash, owner, bytes, start, length, old.value);
    return old.value;
  }

  /** Remembers a value; the key is copied. A key longer than an eighth of the bound is not kept. */
  set(owner: object, bytes: Uint8Array, start: number, length: number, value: T): void {
    if (length > this.#maxKeyBytes / 8) return;
    this.#insert(hashWords(bytes, start, length), owner, bytes, start, length, value);
  }

  #insert(
    hash: number,
    owner: object,
    bytes: Uint8Array,
    start: number,
    length: number,
    value: T,
  ): void {
    const { entries, keyBytes } = this.#young;
    if (entries.size >= this.#maxEntries / 2 || keyBytes > this.#maxKeyBytes / 2) {
      this.#old = this.#young;
      this.#young = new Generation();
    }
    const at = this.#young.keep(bytes, start, length);
    this.#young.entries.set(hash, { owner, at, length, value });
  }
}

/** Entries by the hash of their keys, which lie one behind the other: memory for each would cost more than its bytes. */
class Generation<T> {
  readonly entries = new Map<number, Entry<T>>();
  keys = new Uint8Array(0);
  view = new DataView(this.keys.buffer);
  keyBytes = 0;

  /** Copies a key; returns where it begins. */
  keep(bytes: Uint8Array, start: number, length: number): number {
    const at = this.keyBytes;
    this.keyBytes += length;
    if (this.keyBytes > this.keys.length) {
      this.keys = grown(this.keys, Math.max(minKeyRoom, this.keyBytes * 2));
      this.view = new DataView(this.keys.buffer);
    }
    copyBytes(bytes, start, start + length, this.keys, at);
    return at;
  }
}

const minKeyRoom = 256;

interface Entry<T> {
  readonly owner: object;
  /** Where its key begins among those of its generation. */
  readonly at: number;
  readonly length: number;
  readonly value: T;
}

/** Hashes four bytes at a time, in two independent lanes; returns a signed 32-bit number. */
function hashWords(bytes: Uint8Array, start: number, length: number): number {
  const view = viewOf(bytes);
  const end = start + length;
  let even = length;
  let odd = 0;
  let at = start;
  for (; at + 8 <= end; at += 8) {
    even = Math.imul(rotate(even) ^ view.getInt32(at, true), factor);
    odd = Math.imul(rotate(odd) ^ view.getInt32(at + 4, true), factor);
  }
  for (; at < end; at++) even = Math.imul(rotate(even) ^ bytes[at]!, factor);
  const hash = Math.imul(rotate(odd) ^ even, factor);
  return hash ^ (hash >>> 15);
}

const factor = 0x9e3779b1;

function rotate(word: number): number {
  return (word << 5) | (word >>> 27);
}

let viewed: Uint8Array | undefined;
let view: DataView = new DataView(new ArrayBuffer(0));

/** Lookups of the texts of one push follow each other, so the last view is kept. */
function viewOf(bytes: Uint8Array): DataView {
  if (viewed === bytes) return view;
  view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  viewed = bytes;
  return view;
}

function matches<T>(
  entry: Entry<T>,
  { keys, view: keyView }: Generation<T>,
  owner: object,
  bytes: Uint8Array,
  start: number,
  length: number,
): boolean {
  if (entry.owner !== owner || entry.length !== length) return false;
  const view = viewOf(bytes);
  let at = 0;
  for (; at + 4 <= length; at += 4) {
    if (keyView.getInt32(entry.at + at, true) !== view.getInt32(start + at, true)) return false;
  }
  for (; at < length; at++) if (keys[entry.at + at] !== bytes[start + at]) return false;
  return true;
}
