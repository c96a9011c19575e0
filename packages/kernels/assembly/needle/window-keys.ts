/**
 * Keys of the needle filter of a block: of its windows of five bytes. The twin says what they mean; here four windows are
 * worked out at once, where their eight bytes were not met before, and their keys go through two hash tables of
 * distinct ones, because the plain windows of a block are many and few of them differ.
 */

import { put } from "./lanes";

/** Constants of the loop over windows. They are loaded, because one that the compiler knows is made anew each time. */
const CONSTANTS = memory.data<u32>([
  0x9e3779b1, 0x85ebca6b, 0x21f0aaad, 0x735a2d97, 0xff, 0xffffff, 0x30303030, 0x0a0a0a0a,
]);

/** Words of eight bytes, which four windows stand in, whose keys were handed on: a log repeats most of what it says. */
const RECENT_BITS: u32 = 14;
const RECENT_SHIFT: u64 = 64 - RECENT_BITS;
const SPREAD: u64 = 0x9e3779b97f4a7c15;

/** Keys that are held back until they are looked up, of each kind. */
const LIST: usize = 2048;

/**
 * Writes the distinct keys of the rows to the places in `control`, which holds for mixed and then for plain keys: u32
 * address of zeroed slots, u32 number of slots (a power of two), u32 address of the keys (room for as many as slots),
 * u32 count on return; behind them the address of scratch for two lists. Lower-cases the bytes. Returns 0, 1 when the
 * rows have U+212A or U+017F, -1 when there are not enough slots.
 */
export function collectNeedleKeys(bytes: usize, offsets: usize, rows: u32, control: usize): i32 {
  const mixed = control;
  const plain = control + 16;
  store<u32>(mixed, 0, 12);
  store<u32>(plain, 0, 12);
  const recent = <usize>load<u32>(control, 32);
  // What is there first must not be what a word of zeros looks for.
  store<u64>(recent, 1);
  const mixedList = recent + ((<usize>1 << RECENT_BITS) << 3);
  const plainList = mixedList + (LIST + 16) * 4;
  const start = bytes + load<u32>(offsets);
  const signs = fold(start, bytes + load<u32>(offsets + (<usize>rows << 2)));
  let m = mixedList;
  let p = plainList;
  const mEnd = mixedList + LIST * 4;
  const pEnd = plainList + LIST * 4;
  const golden = v128.load32_splat(CONSTANTS);
  const second = v128.load32_splat(CONSTANTS, 4);
  const mix1 = v128.load32_splat(CONSTANTS, 8);
  const mix2 = v128.load32_splat(CONSTANTS, 12);
  const byte = v128.load32_splat(CONSTANTS, 16);
  const three = v128.load32_splat(CONSTANTS, 20);
  const zeros = v128.load32_splat(CONSTANTS, 24);
  const tens = v128.load32_splat(CONSTANTS, 28);
  const none = v128.xor(golden, golden);
  for (let row: u32 = 0; row < rows; row++) {
    const slot = offsets + (<usize>row << 2);
    const from = bytes + load<u32>(slot);
    const end = bytes + load<u32>(slot, 4);
    if (end - from < 5 || end < from) continue;
    // behind the last place where a window may begin
    const last = end - 4;
    for (let next = from; next < last; next += 4) {
      let at = next;
      let valid = 15;
      if (last - from < 4) valid = (1 << <i32>(last - from)) - 1;
      else {
        // The last four windows of the row may be some of the four before once more.
        at = min(at, last - 4);
        const word = load<u64>(at);
        const known = recent + (<usize>((word * SPREAD) >> RECENT_SHIFT) << 3);
        if (load<u64>(known) == word) continue;
        store<u64>(known, word);
      }
      const text = v128.load(at);
      const digits = i8x16.bitmask(i8x16.lt_u(i8x16.sub(text, zeros), tens));
      const isMixed = (digits | (digits >> 1) | (digits >> 2) | (digits >> 3) | (digits >> 4)) & 15;
      // the first four bytes of four windows, and the fifth
      const low = i8x16.shuffle(text, text, 0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6);
      const fifth = v128.and(
        i8x16.shuffle(text, text, 4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7),
        byte,
      );
      let hash = v128.xor(
        i32x4.mul(low, golden),
        i32x4.add(i32x4.mul(fifth, second), second),
      );
      hash = i32x4.mul(v128.xor(hash, i32x4.shr_u(hash, 16)), mix1);
      hash = i32x4.mul(v128.xor(hash, i32x4.shr_u(hash, 15)), mix2);
      hash = v128.xor(hash, i32x4.shr_u(hash, 15));
      // 0 becomes 1
      const keys = i32x4.sub(hash, i32x4.eq(hash, none));
      if (isMixed == 0 && valid == 15) {
        v128.store(p, keys);
        p += 16;
      } else {
        const isPlain = ~isMixed & valid;
        const first = i32x4.mul(v128.and(low, three), golden);
        const middle = i32x4.mul(i32x4.shr_u(low, 8), golden);
        const third = i32x4.mul(v128.or(i32x4.shr_u(low, 16), i32x4.shl(fifth, 16)), golden);
        const isOut = v128.and(i32x4.lt_u(middle, first), i32x4.lt_u(middle, third));
        const isKept = isMixed & valid & ~i32x4.bitmask(isOut);
        p = put(p, keys, isPlain);
        m = put(m, keys, isKept);
      }
      if (p >= pEnd) {
        if (!insertPlain(plain, plainList, p)) return -1;
        p = plainList;
      }
      if (m >= mEnd) {
        if (!insertMixed(mixed, mixedList, m)) return -1;
        m = mixedList;
      }
    }
  }
  if (!insertPlain(plain, plainList, p)) return -1;
  if (!insertMixed(mixed, mixedList, m)) return -1;
  return signs ? 1 : 0;
}

/**
 * Looks keys up in a table and writes those that are new behind its others; false when it is too full. Most plain keys
 * are known. Whether another one is cannot be foretold, so both cases do the same, and only a collision takes another way.
 */
@inline
function insert(table: usize, from: usize, to: usize, expectsKnown: bool): bool {
  const slots = <usize>load<u32>(table);
  const size = load<u32>(table, 4);
  const mask = size - 1;
  const keys = <usize>load<u32>(table, 8);
  const start = load<u32>(table, 12);
  let count = start;
  if (start + <u32>((to - from) >> 2) > <u32>((<u64>size * 7) / 10)) return false;
  for (let at = from; at < to; at += 4) {
    const key = load<u32>(at);
    let slot = slots + (<usize>(key & mask) << 2);
    let found = load<u32>(slot);
    if (expectsKnown && found == key) continue;
    if (i32(found != 0) & i32(found != key)) {
      let next = key & mask;
      do {
        next = (next + 1) & mask;
        slot = slots + (<usize>next << 2);
        found = load<u32>(slot);
      } while (found != 0 && found != key);
    }
    store<u32>(slot, key);
    store<u32>(keys + (<usize>count << 2), key);
    count += u32(found == 0);
  }
  store<u32>(table, count, 12);
  return true;
}

function insertPlain(table: usize, from: usize, to: usize): bool {
  return insert(table, from, to, true);
}

function insertMixed(table: usize, from: usize, to: usize): bool {
  return insert(table, from, to, false);
}

/** Lower-cases A to Z in place; up to 15 bytes behind the end may change too. True when U+212A or U+017F occur. */
function fold(start: usize, end: usize): bool {
  let signs = false;
  for (let at = start; at < end; at += 16) {
    const text = v128.load(at);
    const isUpper = i8x16.lt_u(i8x16.sub(text, i8x16.splat(0x41)), i8x16.splat(26));
    v128.store(at, v128.or(text, v128.and(isUpper, i8x16.splat(0x20))));
    if (signs) continue;
    const isLead = v128.or(
      i8x16.eq(text, i8x16.splat(<i8>0xe2)),
      i8x16.eq(text, i8x16.splat(<i8>0xc5)),
    );
    if (!v128.any_true(isLead)) continue;
    for (let i = at; i < min(at + 16, end); i++) {
      const lead = load<u8>(i);
      if (lead == 0xc5 && i + 1 < end && load<u8>(i, 1) == 0xbf) signs = true;
      if (lead == 0xe2 && i + 2 < end && load<u16>(i, 1) == 0xaa84) signs = true;
    }
  }
  return signs;
}
