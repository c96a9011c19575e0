import {
  allFields,
  clearRow,
  CODED,
  found,
  hasEnough,
  isWantedLength,
  matchFields,
  noteFields,
  openFields,
  openRow,
  PLAIN,
} from "./fields";
import { escaped, quoteEnd, wide as isTextWide } from "../quoted";

/*
 * Measured on lines of 210 bytes with 11 pairs, in ns a line: 40 for a field that stands early, 130 for two further
 * back, 140 for one that is absent; the twin 5 times as long. One core of two, Node 24.
 */

let strict: bool = false;
let keepEmpty: bool = false;
let lastWins: bool = false;
let at: usize = 0;

/** Finds fields in the selected rows of a block; the rules are those of src/twin/fields.ts. */
export function scanLogfmtFields(
  bytes: usize,
  low: u32,
  size: u32,
  offsets: usize,
  selection: usize,
  count: u32,
  names: usize,
  starts: usize,
  lengths: usize,
  kinds: usize,
  reads: usize,
  enough: u32,
  isStrict: bool,
  keepsEmpty: bool,
  lastOneWins: bool,
): void {
  strict = isStrict;
  keepEmpty = keepsEmpty;
  lastWins = lastOneWins;
  openFields(bytes, names, starts, lengths, kinds, count, enough);
  for (let i: u32 = 0; i < count; i++) {
    const slot = offsets + (<usize>load<u32>(selection + (<usize>i << 2)) << 2);
    const end = min(load<u32>(slot, 4), size);
    const start = max(min(load<u32>(slot), end), low);
    openRow(i);
    at = bytes + start;
    const isRead = readPairs(bytes + end);
    if (!isRead) clearRow();
    store<u8>(reads + i, isRead ? 1 : 0);
  }
}

/** False for a line with a key beyond ASCII, or with `strict` one with a broken pair. */
function readPairs(end: usize): bool {
  while (true) {
    while (at < end && load<u8>(at) <= 0x20) at++;
    if (at >= end) return true;
    const key = at;
    const keyEnd = wordEnd(key, end);
    if (wide) return false;
    const stop: u32 = keyEnd < end ? load<u8>(keyEnd) : 0;
    let sound = true;
    if (stop == 0x22 || (stop == 0x3d && keyEnd == key)) {
      at = keyEnd;
      sound = false;
    } else if (stop == 0x3d) {
      sound = readValue(key, keyEnd, end);
    } else {
      at = keyEnd;
      note(key, keyEnd, PLAIN, keyEnd, keyEnd);
    }
    if (!sound) {
      if (strict) return false;
      at = blankFrom(at, end);
    }
    if (hasEnough()) return true;
  }
}

/** Reads the value behind the equals sign at `keyEnd`; false when it is broken, with the cursor where it breaks. */
function readValue(key: usize, keyEnd: usize, end: usize): bool {
  const start = keyEnd + 1;
  if (start >= end || load<u8>(start) != 0x22) {
    at = wordEnd(start, end);
    const stop: u32 = at < end ? load<u8>(at) : 0;
    if (stop == 0x3d || stop == 0x22) return false;
    note(key, keyEnd, wide ? CODED : PLAIN, start, at);
    return true;
  }
  const from = start + 1;
  const close = quoteEnd(from, end);
  at = min(close + 1, end);
  if (close >= end || (escaped && !areEscapesSound(from, close))) return false;
  note(key, keyEnd, escaped || isTextWide ? CODED : PLAIN, from, close);
  return true;
}

@inline
function note(key: usize, keyEnd: usize, kind: u32, start: usize, end: usize): void {
  if ((end == start && !keepEmpty) || !isWantedLength(<u32>(keyEnd - key))) return;
  const wanted = lastWins ? allFields : allFields & ~found;
  const fields = matchFields(key, keyEnd, 0, wanted, false);
  if (fields != 0) noteFields(fields, kind, start, end);
}

/** Whether the word read last had bytes beyond ASCII. */
let wide: bool = false;

/** End of a word: a blank, a control character, an equals sign or a quote; at most `end`. */
@inline
function wordEnd(from: usize, end: usize): usize {
  const blank = i8x16.splat(0x20);
  const equals = i8x16.splat(0x3d);
  const quote = i8x16.splat(0x22);
  let high: u32 = 0;
  for (let p = from; p < end; p += 16) {
    const text = v128.load(p);
    const stops = v128.or(
      i8x16.le_u(text, blank),
      v128.or(i8x16.eq(text, equals), i8x16.eq(text, quote)),
    );
    // The end of the row is a stop as well: what follows belongs to another one.
    let mask = <u32>i8x16.bitmask(stops);
    const left = end - p;
    if (left < 16) mask |= 1 << left;
    if (mask == 0) {
      high |= i8x16.bitmask(text);
      continue;
    }
    const length = ctz(mask);
    wide = (high | (i8x16.bitmask(text) & ((1 << length) - 1))) != 0;
    return p + length;
  }
  wide = high != 0;
  return end;
}

function blankFrom(from: usize, end: usize): usize {
  let p = from;
  while (p < end && load<u8>(p) > 0x20) p++;
  return p;
}

/** True when every escape is known and, as there are escapes, no control character stands between them. */
function areEscapesSound(from: usize, end: usize): bool {
  for (let p = from; p < end; p++) {
    const byte = <u32>load<u8>(p);
    if (byte < 0x20) return false;
    if (byte != 0x5c) continue;
    p++;
    const escape = <u32>load<u8>(p);
    if (escape != 0x75) {
      if (!isKnownEscape(escape)) return false;
      continue;
    }
    if (end - p <= 4) return false;
    for (let i: usize = 1; i <= 4; i++) if (!isHex(load<u8>(p + i))) return false;
    p += 4;
  }
  return true;
}

function isKnownEscape(byte: u32): bool {
  if (byte == 0x22 || byte == 0x5c || byte == 0x2f || byte == 0x27) return true;
  return byte == 0x62 || byte == 0x66 || byte == 0x6e || byte == 0x72 || byte == 0x74;
}

function isHex(byte: u32): bool {
  return byte - 0x30 < 10 || (byte | 0x20) - 0x61 < 6;
}
