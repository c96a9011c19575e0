/**
 * Keys of the needle filter: what stands for the windows of five bytes of a text. The same keys are made of the lines
 * of a block, by the kernel `collectNeedleKeys`, and of a text that is searched, here. See docs/formats/needle-filter.md.
 */

/** Bytes of a window; a shorter text has no key. */
export const windowBytes = 5;

/** The distinct keys of the lines of a block, in any order. */
export interface WindowKeys {
  /** Of windows with a digit, without those that the sampling leaves out. */
  readonly mixed: Uint32Array;
  /** Of windows without a digit. */
  readonly plain: Uint32Array;
  /** The signs that fold to k and s (U+212A, U+017F) occur. */
  readonly hasSigns: boolean;
}

/** The keys that a filter of one block is built from. */
export interface FilterKeys {
  readonly keys: Uint32Array;
  /** Only keys whose lower 16 bits are below this are kept; 0: all are. */
  readonly threshold: number;
  /** Keys for each window without a digit: 3, or 1 where these would be too many. */
  readonly plainKeys: 1 | 3;
}

/** Memory for so many keys, of arbitrary content. */
export type TakeKeys = (count: number) => Uint32Array;

/**
 * Chooses at most about `maxKeys` keys for a block: first the additional ones of plain windows go, then keys by their
 * lower bits. Throws nothing away otherwise: a missing key would refuse a block that has the text. The keys lie in memory
 * from `take`.
 */
export function chooseKeys(
  mixed: Uint32Array,
  plain: Uint32Array,
  maxKeys: number,
  take: TakeKeys = (count) => new Uint32Array(count),
): FilterKeys {
  const single = mixed.length + plain.length;
  const hasExtra = single + plain.length * 2 <= maxKeys;
  const keys = take(hasExtra ? single + plain.length * 2 : single);
  keys.set(mixed);
  keys.set(plain, mixed.length);
  if (hasExtra) {
    for (let i = 0, at = single; i < plain.length; i++) {
      const second = nextKey(plain[i]!);
      keys[at++] = second;
      keys[at++] = nextKey(second);
    }
    return { keys, threshold: 0, plainKeys: 3 };
  }
  if (single <= maxKeys) return { keys, threshold: 0, plainKeys: 1 };
  const threshold = Math.max(1, Math.floor((65536 * maxKeys) / single));
  let count = 0;
  for (let i = 0; i < single; i++) {
    const key = keys[i]!;
    if ((key & 0xffff) < threshold) keys[count++] = key;
  }
  return { keys: keys.subarray(0, count), threshold, plainKeys: 1 };
}

/** A key of a searched text. */
export interface NeedleKey {
  readonly key: number;
  /** One of the additional keys of a plain window: a block with one key for each does not have it. */
  readonly isExtra: boolean;
}

/** Texts are asked for no more keys than this: a block that passes them all is read. */
const maxNeedleKeys = 256;

/** The keys of a text, those that refuse most first; none when it is too short. */
export function needleKeys(text: Uint8Array): readonly NeedleKey[] {
  const mixed = new Set<number>();
  const plain = new Set<number>();
  for (let at = 0; at + windowBytes <= text.length; at++) {
    const key = windowKey(text, at);
    if (!isMixed(text, at)) plain.add(key);
    else if (!isLeftOut(text, at)) mixed.add(key);
  }
  const keys = [...mixed, ...plain].map((key) => ({ key, isExtra: false }));
  for (const key of plain) {
    const second = nextKey(key);
    keys.push({ key: second, isExtra: true }, { key: nextKey(second), isExtra: true });
  }
  return keys.slice(0, maxNeedleKeys);
}

/** The key of the window at a place; never 0. */
export function windowKey(bytes: Uint8Array, at: number): number {
  const low = byteAt(bytes, at) | (part(bytes, at + 1) << 8);
  const last = byteAt(bytes, at + 4);
  const key = mix(Math.imul(low, golden) ^ Math.imul(last + 1, 0x85ebca6b));
  return key === 0 ? 1 : key;
}

/** True when the window has a digit. */
export function isMixed(bytes: Uint8Array, at: number): boolean {
  for (let i = at; i < at + windowBytes; i++)
    if (bytes[i]! >= 0x30 && bytes[i]! <= 0x39) return true;
  return false;
}

/**
 * One in three windows with a digit has no key: a closed syncmer, chosen by the window alone, of two neighbours
 * at most one (R. Edgar, "Syncmers are more sensitive than minimizers").
 */
export function isLeftOut(bytes: Uint8Array, at: number): boolean {
  const middle = Math.imul(part(bytes, at + 1), golden) >>> 0;
  return (
    middle < Math.imul(part(bytes, at), golden) >>> 0 &&
    middle < Math.imul(part(bytes, at + 2), golden) >>> 0
  );
}

/** The additional key behind a key. */
export function nextKey(key: number): number {
  return mix((key + 0x51ed27) >>> 0);
}

/** Keys of one value of metadata: an absent one passes the filter with a chance of about 1 in 256. */
const keysPerValue = 8;

/** The keys of values, given the first of each. */
export function keysOfValues(first: Uint32Array): Uint32Array {
  const keys = new Uint32Array(first.length * keysPerValue);
  for (let i = 0, at = 0; i < first.length; i++) {
    keys[at++] = first[i]!;
    for (let n = 1; n < keysPerValue; n++, at++) keys[at] = nextKey(keys[at - 1]!);
  }
  return keys;
}

/** Mixes 32 bits well (C. Wellons, "Prospecting for hash functions"). */
export function mix(value: number): number {
  let hash = value;
  hash ^= hash >>> 16;
  hash = Math.imul(hash, 0x21f0aaad);
  hash ^= hash >>> 15;
  hash = Math.imul(hash, 0x735a2d97);
  hash ^= hash >>> 15;
  return hash >>> 0;
}

const golden = 0x9e3779b1;

/** Three bytes. */
function part(bytes: Uint8Array, at: number): number {
  return byteAt(bytes, at) | (byteAt(bytes, at + 1) << 8) | (byteAt(bytes, at + 2) << 16);
}

/** A byte in lower case. */
function byteAt(bytes: Uint8Array, at: number): number {
  const byte = bytes[at]!;
  return byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte;
}
