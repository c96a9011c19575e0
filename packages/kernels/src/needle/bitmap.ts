/**
 * The plain form of the needle filter: a bit for each slot, set where a key of the block has it. Makes a filter of a third more
 * bytes than a ribbon, of which an absent key passes as seldom, in a fraction of the time. See docs/formats/needle-filter.md.
 */

/** Which keys a bitmap has, and of how many slots it is. */
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

/** The bits of some keys. Slot 0, where compiled code puts keys that are left out, is always set and so says nothing. */
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
