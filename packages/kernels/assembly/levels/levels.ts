import { quoteEnd } from "../quoted";
import { findKeyword, levelOfBytes } from "./text";

/*
 * Measured in MB/s: mixed lines 4300, JSON 7000 and logfmt 5000 (their level stands early), nginx 2000, Java 7700; the
 * twin 316 for mixed lines. One core of two, Node 24.
 */

/**
 * The names of level fields, as src/wasm/fields.ts lays them out: a u32 count, then for each rank where the name
 * starts, its length, and the same of its folded form; u32 each, starts count from here.
 */
let table: usize = 0;
let nameCount: u32 = 0;
let maxDepth: i32 = 0;
/** Bit n says that a name is n bytes long; bit 31 stands for all longer ones. */
let lengths: u32 = 0;
/** One byte per byte value: 1 when a name begins so, 2 when a folded name does. */
const beginnings = memory.data(256);

/**
 * Writes the level code of each row to `out`; see src/twin/levels.ts for the rules. Row i has the `lineLength[i]`
 * bytes from `bytes + lineStart[i]`, cut at `size`; 64 bytes behind `size` may be read.
 */
export function detectLevels(
  bytes: usize,
  size: u32,
  lineStart: usize,
  lineLength: usize,
  rows: u32,
  out: usize,
  fields: usize,
  depth: i32,
): void {
  openNames(fields);
  maxDepth = depth > 0 ? depth : i32.MAX_VALUE;
  for (let row: u32 = 0; row < rows; row++) {
    const slot = <usize>row << 2;
    const start = <u64>load<u32>(lineStart + slot);
    const end = min(start + load<u32>(lineLength + slot), <u64>size);
    const from = bytes + <usize>min(start, end);
    store<u8>(out + row, levelOfLine(from, bytes + <usize>end));
  }
}

function openNames(fields: usize): void {
  table = fields;
  nameCount = load<u32>(fields);
  lengths = 0;
  memory.fill(beginnings, 0, 256);
  for (let rank: u32 = 0; rank < nameCount; rank++) {
    const entry = fields + (<usize>rank << 4);
    lengths |= (1 << min(load<u32>(entry, 8), 31)) | (1 << min(load<u32>(entry, 16), 31));
    const first = beginnings + load<u8>(fields + load<u32>(entry, 4));
    store<u8>(first, load<u8>(first) | 1);
    const folded = load<u8>(fields + load<u32>(entry, 12));
    markFolded(folded);
    if (folded >= 0x61 && folded <= 0x7a) markFolded(folded - 0x20);
  }
}

function markFolded(byte: u32): void {
  store<u8>(beginnings + byte, load<u8>(beginnings + byte) | 2);
}

function levelOfLine(start: usize, end: usize): u32 {
  let from = start;
  let to = end;
  while (from < to && isBlank(load<u8>(from))) from++;
  while (to > from && isBlank(load<u8>(to - 1))) to--;
  let level: u32 = 0;
  if (to > from + 1 && load<u8>(from) == 0x7b && load<u8>(to - 1) == 0x7d) {
    level = findJsonLevel(from, to);
  } else if (hasEquals(from, to)) {
    level = findLogfmtLevel(from, to);
  }
  return level != 0 ? level : findKeyword(start, end);
}

@inline
function isBlank(byte: u32): bool {
  return byte == 0x20 || byte - 9 < 5;
}

function hasEquals(from: usize, end: usize): bool {
  const equals = i8x16.splat(0x3d);
  let p = from;
  for (; p + 16 <= end; p += 16) {
    if (v128.any_true(i8x16.eq(v128.load(p), equals))) return true;
  }
  const mask = i8x16.bitmask(i8x16.eq(v128.load(p), equals));
  return (mask & ((1 << (<i32>(end - p))) - 1)) != 0;
}

/** Code of the first string field with one of the names, in document order; 0 without one. */
function findJsonLevel(start: usize, end: usize): u32 {
  let at = start;
  let objects: i32 = 0;
  let skipped: i32 = 0;
  while (at < end) {
    const byte = <u32>load<u8>(at);
    if (byte == 0x22) {
      const key = at + 1;
      const close = quoteEnd(key, end);
      if (close >= end) return 0;
      at = close + 1;
      if (skipped > 0) continue;
      at = skipBlanks(at, end);
      if (at >= end || load<u8>(at) != 0x3a) continue;
      at = skipBlanks(at + 1, end);
      if (at >= end || load<u8>(at) != 0x22 || !isName(key, close - key)) continue;
      const valueEnd = quoteEnd(at + 1, end);
      return valueEnd >= end ? 0 : levelOfBytes(at + 1, valueEnd - at - 1);
    }
    at++;
    if (byte < 0x5b) continue;
    if (skipped > 0) {
      if (byte == 0x7b || byte == 0x5b) skipped++;
      else if (byte == 0x7d || byte == 0x5d) skipped--;
    } else if (byte == 0x5b) {
      skipped = 1;
    } else if (byte == 0x7b) {
      if (objects >= maxDepth) skipped = 1;
      else objects++;
    } else if (byte == 0x7d) {
      if (--objects == 0) return 0;
    }
  }
  return 0;
}

@inline
function skipBlanks(from: usize, end: usize): usize {
  let at = from;
  while (at < end && isBlank(load<u8>(at))) at++;
  return at;
}

function isName(start: usize, length: usize): bool {
  if ((lengths & (1 << min(<u32>length, 31))) == 0) return false;
  if (length > 0 && (load<u8>(beginnings + load<u8>(start)) & 1) == 0) return false;
  for (let rank: u32 = 0; rank < nameCount; rank++) {
    const entry = table + (<usize>rank << 4);
    if (load<u32>(entry, 8) != <u32>length) continue;
    if (memory.compare(start, table + load<u32>(entry, 4), length) == 0) return true;
  }
  return false;
}

/** Code of the pair whose key has the best rank; 0 when no key matches or its value is no level. */
function findLogfmtLevel(start: usize, end: usize): u32 {
  let best = nameCount;
  let level: u32 = 0;
  let at = start;
  while (at < end && best > 0) {
    while (at < end && load<u8>(at) <= 0x20) at++;
    const key = at;
    at = keyEnd(at, end);
    if (at >= end) break;
    const stop = load<u8>(at);
    if (stop != 0x3d) {
      if (stop == 0x22) at = wordEnd(at, end);
      continue;
    }
    const keyLength = at - key;
    at++;
    let value = at;
    let valueEnd: usize;
    if (at < end && load<u8>(at) == 0x22) {
      value = at + 1;
      valueEnd = quoteEnd(value, end);
      if (valueEnd >= end) break;
      at = valueEnd + 1;
    } else {
      valueEnd = wordEnd(at, end);
      at = valueEnd;
    }
    if (keyLength == 0) continue;
    const rank = rankOf(key, <u32>keyLength, best);
    if (rank >= best) continue;
    best = rank;
    level = levelOfBytes(value, valueEnd - value);
  }
  return level;
}

/** First byte from `from` on that is a blank, a control, an equals sign or a quote; at most `end`. */
@inline
function keyEnd(from: usize, end: usize): usize {
  const blank = i8x16.splat(0x20);
  const equals = i8x16.splat(0x3d);
  const quote = i8x16.splat(0x22);
  for (let p = from; p < end; p += 16) {
    const text = v128.load(p);
    const stops = v128.or(
      i8x16.le_u(text, blank),
      v128.or(i8x16.eq(text, equals), i8x16.eq(text, quote)),
    );
    const mask = i8x16.bitmask(stops);
    if (mask != 0) return min(p + ctz(mask), end);
  }
  return end;
}

/** First blank or control from `from` on; at most `end`. */
@inline
function wordEnd(from: usize, end: usize): usize {
  const blank = i8x16.splat(0x20);
  for (let p = from; p < end; p += 16) {
    const mask = i8x16.bitmask(i8x16.le_u(v128.load(p), blank));
    if (mask != 0) return min(p + ctz(mask), end);
  }
  return end;
}

function rankOf(start: usize, length: u32, below: u32): u32 {
  if ((lengths & (1 << min(length, 31))) == 0) return below;
  if ((load<u8>(beginnings + load<u8>(start)) & 2) == 0) return below;
  for (let rank: u32 = 0; rank < below; rank++) {
    const entry = table + (<usize>rank << 4);
    if (load<u32>(entry, 16) != length) continue;
    if (equalsFolded(start, table + load<u32>(entry, 12), length)) return rank;
  }
  return below;
}

function equalsFolded(text: usize, folded: usize, length: u32): bool {
  for (let i: u32 = 0; i < length; i++) {
    const byte = <u32>load<u8>(text + i);
    const lower = byte - 0x41 < 26 ? byte | 0x20 : byte;
    if (lower != <u32>load<u8>(folded + i)) return false;
  }
  return true;
}
