/**
 * Keys of the needle filter stand for the windows of five bytes of a text. The kernel `collectNeedleKeys` makes them from
 * the lines of a block, and `needleKeys` from a text that is searched. See docs/formats/needle-filter.md.
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

/** Gives memory for a number of keys, with arbitrary content. */
type TakeKeys = (count: number) => Uint32Array;

/**
 * Chooses at most about `maxKeys` keys for a block: first the additional ones of plain windows go, then keys by their
 * lower bits. Nothing else is left out: a missing key would refuse a block that has the text. The keys lie in memory
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

/** A text has at most this many keys: a block that passes them all is read. */
const maxNeedleKeys = 256;

/** The keys of a text, the ones that refuse most first; none when the text is too short. */
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

/** Slots that a key is spread over. */
export const ribbonWidth = 64;

/** Slots for a number of keys. With fewer than 1.05 slots for each, absent keys pass much more often than every second time. */
export function slotsFor(keys: number): number {
  return keys === 0 ? 0 : Math.ceil(1.06 * keys) + ribbonWidth;
}

/** More keys than this have slots that doubles cannot place exactly. */
export const maxRibbonKeys = 1_900_000;

/** The first of the slots of a key. */
export function startOf(key: number, slots: number): number {
  return Math.floor((key * (slots - ribbonWidth + 1)) / 0x1_0000_0000);
}

/** Which of its slots a key uses: bits 0 to 31; the first always. */
export function lowCoefficient(key: number): number {
  return (mix((key + 0x6c8e9cf5) >>> 0) | 1) >>> 0;
}

/** Bits 32 to 63. */
export function highCoefficient(key: number): number {
  return mix(key ^ 0x2545f491);
}

/**
 * Which keys a bitmap has, and how many slots. A bitmap is the plain form of the needle filter: a bit for each slot, set
 * where a key of the block has it. It takes a third more bytes than a ribbon that refuses as well, and a fraction of the
 * time. See docs/formats/needle-filter.md.
 */
export interface BitmapChoice {
  /** A multiple of 64, at most `maxBitmapSlots`. */
  readonly slots: number;
  /** Keys for each window without a digit. */
  readonly plainKeys: 1 | 3;
  /** Only keys whose lower 16 bits are below this are marked; 0: all are. Goes with one key for each plain window. */
  readonly threshold: number;
}

/** The bits of one block. */
export interface MarkedKeys {
  /** Bit `slot` is bit `slot & 7` of byte `slot >> 3`. */
  readonly bits: Uint8Array;
  /** How many are set. */
  readonly count: number;
}

/** With more slots doubles could not place a key exactly. */
export const maxBitmapSlots = 2 ** 20;

/** The slot of a key. */
export function bitmapSlot(key: number, slots: number): number {
  return Math.floor((key * slots) / 0x1_0000_0000);
}

/** Sets the bits of keys. Slot 0, where compiled code puts keys that are left out, is always set and says nothing. */
export function markKeys(keys: Iterable<number>, slots: number): MarkedKeys {
  const bits = new Uint8Array(slots / 8);
  bits[0] = 1;
  let count = 1;
  for (const key of keys) {
    const slot = bitmapSlot(key, slots);
    const bit = 1 << (slot & 7);
    if ((bits[slot >>> 3]! & bit) !== 0) continue;
    bits[slot >>> 3]! |= bit;
    count++;
  }
  return { bits, count };
}
