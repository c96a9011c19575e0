/**
 * Keys of the needle filter of a block: of its windows of five bytes, as bits or in tables. The twins say what they mean.
 * Words of eight bytes, in which four windows begin, are passed over where they were met before, for a log repeats most
 * of what it says. The others are listed first and worked out then, four at a time, so that neither loop has a branch
 * that cannot be foretold.
 */

import { insertMixed, insertPlain } from "./key-table";
import { put } from "./lanes";

/** Constants of the loop over words. They are loaded, because one that the compiler knows is made anew each time. */
const CONSTANTS = memory.data<u32>([
  0x9e3779b1, 0x85ebca6b, 0x21f0aaad, 0x735a2d97, 0x51ed27, 0xff, 0xffff, 0xffffff, 0x80000000,
  0x30303030, 0x0a0a0a0a, 0x41414141, 0x1a1a1a1a, 0x20202020,
]);

/** Words that were listed already, by their hash. */
const RECENT_BITS: u32 = 14;
const RECENT_SHIFT: u64 = 64 - RECENT_BITS;
const SPREAD: u64 = 0x9e3779b97f4a7c15;

/** Words that are listed before they are worked out, and the bytes of a list of their keys. */
const LIST: usize = 2048;
const LISTED: usize = (((LIST + 4) << 2) << 2) + 32;

/** Where the kernel works, and what it looks for. */
let recent: usize = 0;
let list: usize = 0;
let plain: usize = 0;
/** A byte for each slot, 0xff where a key has it. */
let map: usize = 0;
let range: u32 = 0;
let hasExtra: bool = false;
let top: u32 = 0;
/** Where the keys of mixed windows are listed when tables are filled; 0 where slots are set. */
let mixed: usize = 0;
let mixedEnd: usize = 0;
let control: usize = 0;
let isFull: bool = false;

/**
 * Writes a bit for each of `slots` (a multiple of 64) to `bits`. With `extra` plain windows have three keys. With a
 * `threshold` only keys whose lower 16 bits are below it are taken, and there are no additional ones. `scratch` has room for
 * 180 KiB and a byte a slot. Returns how many bits are set, times two, and 1 more when the rows have U+212A or U+017F.
 */
export function markNeedleKeys(
  bytes: usize,
  offsets: usize,
  rows: u32,
  slots: u32,
  extra: bool,
  threshold: u32,
  scratch: usize,
  bits: usize,
): u32 {
  begin(scratch);
  mixed = 0;
  map = plain + LISTED;
  range = slots;
  hasExtra = extra && threshold == 0;
  top = threshold;
  memory.fill(map, 0, slots);
  // where keys go that are left out
  store<u8>(map, 0xff);
  const signs = readRows(bytes, offsets, rows);
  return (pack(bits) << 1) | u32(signs);
}

/**
 * Writes the distinct keys of the rows to two tables (key-table.ts) in `tables`, of mixed and then of plain windows; `scratch` has room for
 * 210 KiB. Returns 0, 1 when the rows have U+212A or U+017F, -1 when there are not enough slots.
 */
export function collectNeedleKeys(
  bytes: usize,
  offsets: usize,
  rows: u32,
  tables: usize,
  scratch: usize,
): i32 {
  begin(scratch);
  mixed = plain + LISTED;
  mixedEnd = mixed;
  control = tables;
  hasExtra = false;
  isFull = false;
  store<u32>(tables, 0, 12);
  store<u32>(tables, 0, 28);
  const signs = readRows(bytes, offsets, rows);
  return isFull ? -1 : i32(signs);
}

function begin(scratch: usize): void {
  recent = scratch;
  list = recent + (<usize>8 << RECENT_BITS);
  plain = list + ((LIST + 4) << 3);
  memory.fill(recent, 0, <usize>8 << RECENT_BITS);
  // What is there first must not be what a word of zeros looks for.
  store<u64>(recent, 1);
}

/** Goes through the windows of all rows. True when the rows have U+212A or U+017F. */
function readRows(bytes: usize, offsets: usize, rows: u32): bool {
  let to = list;
  for (let row: u32 = 0; row < rows; row++) {
    const slot = offsets + (<usize>row << 2);
    const from = bytes + load<u32>(slot);
    const end = bytes + load<u32>(slot, 4);
    if (end < from || end - from < 5) continue;
    if (end - from < 8) markShort(from, end);
    else to = listRow(from, end - 4, to);
  }
  workOut(to);
  const first = bytes + load<u32>(offsets);
  return hasSigns(first, bytes + load<u32>(offsets + (<usize>rows << 2)));
}

/**
 * Writes a bit for each of `slots` to `bits`: for the keys of `count` values, of each the first and seven that follow from it. The
 * two words behind the last are overwritten. `scratch` has room for a byte a slot. Returns how many bits are set.
 */
export function markValueKeys(
  first: usize,
  count: u32,
  slots: u32,
  threshold: u32,
  scratch: usize,
  bits: usize,
): u32 {
  map = scratch;
  range = slots;
  top = threshold;
  memory.fill(map, 0, slots);
  store<u8>(map, 0xff);
  const end = first + (<usize>count << 2);
  if (count > 0) v128.store(end, v128.load32_splat(end - 4));
  const step = v128.load32_splat(CONSTANTS, 16);
  for (let at = first; at < end; at += 16) {
    let key = v128.load(at);
    set(thinned(key, key));
    for (let i = 1; i < 8; i++) {
      key = mix(i32x4.add(key, step));
      set(thinned(key, key));
    }
  }
  return pack(bits);
}

/** Lists the words of a row whose windows begin before `last`, four at least; works words out when the list is full. */
@inline
function listRow(from: usize, last: usize, listEnd: usize): usize {
  let to = listEnd;
  let at = from;
  const end = last - 3;
  const full = list + (LIST << 3);
  while (at < end) {
    const room = to < full ? (full - to) >> 1 : 0;
    const stop = min(end, at + room);
    for (; at < stop; at += 4) to = listWord(at, to);
    if (room < 256) {
      workOut(to);
      to = list;
    }
  }
  // some of the four before once more
  return at < last ? listWord(last - 4, to) : to;
}

@inline
function listWord(at: usize, to: usize): usize {
  const word = load<u64>(at);
  const known = recent + (<usize>((word * SPREAD) >> RECENT_SHIFT) << 3);
  store<u64>(to, word);
  const isNew = <usize>(load<u64>(known) != word);
  store<u64>(known, word);
  return to + (isNew << 3);
}

/** Does with the words that are listed up to `end` what is asked for: each has a loop of its own. */
function workOut(end: usize): void {
  if (end == list) return;
  if (mixed == 0) markWords(end);
  else collectWords(end);
}

function markWords(end: usize): void {
  workOutAs(end, false);
}

function collectWords(end: usize): void {
  workOutAs(end, true);
}

@inline
function workOutAs(end: usize, collects: bool): void {
  // The last four are not all there: the last one, up to three times more.
  const last = load<u64>(end - 8);
  store<u64>(end, last);
  store<u64>(end, last, 8);
  store<u64>(end, last, 16);
  let p = plain;
  for (let at = list; at < end; at += 32) {
    const one = fold(v128.load(at));
    const two = fold(v128.load(at, 16));
    // the bytes 0 to 3 of four words, and 4 to 7; then those from 1, 2 and 3 on
    const text = v128.shuffle<u32>(one, two, 0, 2, 4, 6);
    const rest = v128.shuffle<u32>(one, two, 1, 3, 5, 7);
    const text1 = v128.or(i32x4.shr_u(text, 8), i32x4.shl(rest, 24));
    const text2 = v128.or(i32x4.shr_u(text, 16), i32x4.shl(rest, 16));
    const text3 = v128.or(i32x4.shr_u(text, 24), i32x4.shl(rest, 8));
    const part0 = part(text);
    const part1 = part(text1);
    const part2 = part(text2);
    const part3 = part(text3);
    const part4 = part(rest);
    const part5 = part(i32x4.shr_u(rest, 8));
    const digits = v128.shuffle<u32>(withDigit(one), withDigit(two), 0, 2, 4, 6);
    const byte = v128.load32_splat(CONSTANTS, 20);
    let isOut = v128.and(i32x4.gt_s(part0, part1), i32x4.gt_s(part2, part1));
    let isMixed = i32x4.shr_s(i32x4.shl(digits, 24), 31);
    p = window(text, v128.and(rest, byte), isMixed, isOut, p, collects);
    isOut = v128.and(i32x4.gt_s(part1, part2), i32x4.gt_s(part3, part2));
    isMixed = i32x4.shr_s(i32x4.shl(digits, 16), 31);
    p = window(text1, v128.and(i32x4.shr_u(rest, 8), byte), isMixed, isOut, p, collects);
    isOut = v128.and(i32x4.gt_s(part2, part3), i32x4.gt_s(part4, part3));
    isMixed = i32x4.shr_s(i32x4.shl(digits, 8), 31);
    p = window(text2, v128.and(i32x4.shr_u(rest, 16), byte), isMixed, isOut, p, collects);
    isOut = v128.and(i32x4.gt_s(part3, part4), i32x4.gt_s(part5, part4));
    p = window(text3, i32x4.shr_u(rest, 24), i32x4.shr_s(digits, 31), isOut, p, collects);
  }
  endKeys(p);
}

/** Does what is left to do for the keys of plain windows, which end at `p`, and for those of mixed ones. */
@inline
function endKeys(p: usize): void {
  if (mixed == 0) {
    if (hasExtra && p > plain) markExtra(p);
    return;
  }
  isFull = isFull || !insertMixed(control, mixed, mixedEnd) || !insertPlain(control + 16, plain, p);
  mixedEnd = mixed;
}

/**
 * Sets the slots of four windows, of each its bytes 0 to 3 and its last, or lists the mixed ones; `isOut` says which of these are left
 * out. Writes the keys of the plain ones to `p`, and returns where they end.
 */
@inline
function window(
  text: v128,
  last: v128,
  isMixed: v128,
  isOut: v128,
  p: usize,
  collects: bool,
): usize {
  const second = v128.load32_splat(CONSTANTS, 4);
  const fifth = i32x4.add(i32x4.mul(last, second), second);
  const key = mix(v128.xor(i32x4.mul(text, v128.load32_splat(CONSTANTS)), fifth));
  const to = put(p, key, 15 ^ i32x4.bitmask(isMixed));
  // One that is left out has slot 0.
  if (!collects) set(thinned(key, v128.andnot(key, v128.and(isMixed, isOut))));
  else mixedEnd = put(mixedEnd, key, i32x4.bitmask(v128.andnot(isMixed, isOut)));
  return to;
}

/** 0 for the keys that the threshold leaves out, what is given for others. */
@inline
function thinned(key: v128, taken: v128): v128 {
  if (top == 0) return taken;
  const low = v128.and(key, v128.load32_splat(CONSTANTS, 24));
  return v128.and(taken, i32x4.lt_u(low, i32x4.splat(top)));
}

/** Sets the slots of the two additional keys of each plain window. */
function markExtra(end: usize): void {
  v128.store(end, v128.load32_splat(end - 4));
  const step = v128.load32_splat(CONSTANTS, 16);
  for (let at = plain; at < end; at += 16) {
    const key = v128.load(at);
    // 0 becomes 1
    const first = i32x4.sub(key, i32x4.eq(key, i32x4.splat(0)));
    const next = mix(i32x4.add(first, step));
    set(next);
    set(mix(i32x4.add(next, step)));
  }
}

/** Sets the slots of the windows of a row that has no word. */
function markShort(from: usize, end: usize): void {
  for (let at = from; at + 5 <= end; at++) {
    let word: u64 = 0;
    for (let i: usize = 0; i < 8; i++) {
      const byte = at + i < end ? load<u8>(at + i) : 0;
      word |= <u64>byte << (i << 3);
    }
    markOne(word);
  }
}

/** Sets the slots of the first window of a word; the others have bytes that are not there. */
function markOne(word: u64): void {
  const one = fold(i64x2.splat(word));
  const text = v128.shuffle<u32>(one, one, 0, 0, 0, 0);
  const rest = v128.shuffle<u32>(one, one, 1, 1, 1, 1);
  const middle = part(v128.or(i32x4.shr_u(text, 8), i32x4.shl(rest, 24)));
  const third = part(v128.or(i32x4.shr_u(text, 16), i32x4.shl(rest, 16)));
  const isOut = v128.and(i32x4.gt_s(part(text), middle), i32x4.gt_s(third, middle));
  const digits = v128.shuffle<u32>(withDigit(one), one, 0, 0, 0, 0);
  const isMixed = i32x4.shr_s(i32x4.shl(digits, 24), 31);
  const last = v128.and(rest, v128.load32_splat(CONSTANTS, 20));
  if (mixed == 0) endKeys(window(text, last, isMixed, isOut, plain, false));
  else endKeys(window(text, last, isMixed, isOut, plain, true));
}

/** Lower-cases A to Z. */
@inline
function fold(text: v128): v128 {
  const place = i8x16.sub(text, v128.load32_splat(CONSTANTS, 44));
  const isUpper = i8x16.lt_u(place, v128.load32_splat(CONSTANTS, 48));
  return v128.or(text, v128.and(isUpper, v128.load32_splat(CONSTANTS, 52)));
}

/** For each byte of a word whether it or one of the four behind it is a digit. */
@inline
function withDigit(text: v128): v128 {
  const place = i8x16.sub(text, v128.load32_splat(CONSTANTS, 36));
  const digits = i8x16.lt_u(place, v128.load32_splat(CONSTANTS, 40));
  const pairs = v128.or(digits, i64x2.shr_u(digits, 8));
  return v128.or(v128.or(pairs, i64x2.shr_u(pairs, 16)), i64x2.shr_u(digits, 32));
}

/** Of three bytes a number that compares with a sign as the twin's does without. */
@inline
function part(text: v128): v128 {
  const three = v128.and(text, v128.load32_splat(CONSTANTS, 28));
  return v128.xor(i32x4.mul(three, v128.load32_splat(CONSTANTS)), v128.load32_splat(CONSTANTS, 32));
}

@inline
function mix(value: v128): v128 {
  let hash = v128.xor(value, i32x4.shr_u(value, 16));
  hash = i32x4.mul(hash, v128.load32_splat(CONSTANTS, 8));
  hash = i32x4.mul(v128.xor(hash, i32x4.shr_u(hash, 15)), v128.load32_splat(CONSTANTS, 12));
  return v128.xor(hash, i32x4.shr_u(hash, 15));
}

/** Sets the slots of four keys. */
@inline
function set(keys: v128): void {
  const slots = i32x4.splat(range);
  const one = i64x2.extmul_low_i32x4_u(keys, slots);
  const two = i64x2.extmul_high_i32x4_u(keys, slots);
  const slot = v128.shuffle<u32>(one, two, 1, 3, 5, 7);
  store<u8>(map + <usize>i32x4.extract_lane(slot, 0), 0xff);
  store<u8>(map + <usize>i32x4.extract_lane(slot, 1), 0xff);
  store<u8>(map + <usize>i32x4.extract_lane(slot, 2), 0xff);
  store<u8>(map + <usize>i32x4.extract_lane(slot, 3), 0xff);
}

/** Makes a bit of each byte of the map; returns how many are set. */
function pack(bits: usize): u32 {
  let count: u64 = 0;
  for (let at: usize = 0; at < range; at += 64) {
    const from = map + at;
    const word =
      <u64>i8x16.bitmask(v128.load(from)) |
      (<u64>i8x16.bitmask(v128.load(from, 16)) << 16) |
      (<u64>i8x16.bitmask(v128.load(from, 32)) << 32) |
      (<u64>i8x16.bitmask(v128.load(from, 48)) << 48);
    store<u64>(bits + (at >> 3), word);
    count += popcnt(word);
  }
  return <u32>count;
}

/** True when U+212A or U+017F occur. */
function hasSigns(start: usize, end: usize): bool {
  for (let at = start; at < end; at += 32) {
    // most lines are nothing but ASCII
    if (i8x16.bitmask(v128.or(v128.load(at), v128.load(at, 16))) == 0) continue;
    for (let i = at; i < min(at + 32, end); i++) {
      const lead = load<u8>(i);
      if (lead == 0xc5 && i + 1 < end && load<u8>(i, 1) == 0xbf) return true;
      if (lead == 0xe2 && i + 2 < end && load<u16>(i, 1) == 0xaa84) return true;
    }
  }
  return false;
}
