import { type Arena, hasByte } from "../../row/bytes.js";
import { blankBrokenUtf8 } from "../../row/utf8-blank.js";

/** A text as a range of bytes. */
export interface TextRange {
  bytes: Uint8Array;
  start: number;
  end: number;
}

export function emptyText(): TextRange {
  return { bytes: new Uint8Array(0), start: 0, end: 0 };
}

/** Makes `text` what a JSON string means: a wrong escape gives an empty text, broken characters become blanks. */
export function decodeJsonString(
  arena: Arena,
  bytes: Uint8Array,
  from: number,
  to: number,
  text: TextRange,
): void {
  text.bytes = bytes;
  text.start = from;
  text.end = to;
  if (hasByte(bytes, from, to, 92)) {
    const start = unescapeInto(arena, bytes, from, to);
    if (start < 0) {
      text.end = from;
      return;
    }
    text.bytes = arena.bytes;
    text.start = start;
    text.end = arena.used;
  }
  const repaired = blankBrokenUtf8(arena, text.bytes, text.start, text.end);
  if (repaired < 0) return;
  text.bytes = arena.bytes;
  text.start = repaired;
  text.end = arena.used;
}

/**
 * Appends the text of a JSON string without its escapes. Returns its start, or -1 when an escape is wrong; then
 * nothing is appended.
 */
export function unescapeInto(arena: Arena, bytes: Uint8Array, from: number, to: number): number {
  arena.reserve(to - from);
  const out = arena.bytes;
  const start = arena.used;
  let at = start;
  for (let i = from; i < to; i++) {
    const c = bytes[i]!;
    if (c !== 92) {
      out[at++] = c;
      continue;
    }
    i++;
    if (i >= to) return -1;
    const letter = bytes[i]!;
    if (letter !== 117) {
      const plain = plainEscape(letter);
      if (plain < 0) return -1;
      out[at++] = plain;
      continue;
    }
    let code = hex4(bytes, i + 1, to);
    if (code < 0) return -1;
    i += 4;
    if (code >= 0xd800 && code <= 0xdfff) {
      const low =
        code <= 0xdbff && bytes[i + 1] === 92 && bytes[i + 2] === 117 ? hex4(bytes, i + 3, to) : -1;
      if (low < 0xdc00 || low > 0xdfff) return -1;
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      i += 6;
    }
    at = putCode(out, at, code);
  }
  arena.used = at;
  return start;
}

/** The byte that a letter behind a backslash stands for, or -1. */
export function plainEscape(letter: number): number {
  switch (letter) {
    case 34:
    case 92:
    case 47:
      return letter;
    case 98:
      return 8;
    case 102:
      return 12;
    case 110:
      return 10;
    case 114:
      return 13;
    case 116:
      return 9;
    default:
      return -1;
  }
}

/** Four hexadecimal digits as a number, or -1. */
export function hex4(bytes: Uint8Array, at: number, end: number): number {
  if (at + 4 > end) return -1;
  let value = 0;
  for (let i = at; i < at + 4; i++) {
    const c = bytes[i]!;
    const lower = c | 32;
    if (c >= 48 && c <= 57) value = value * 16 + c - 48;
    else if (lower >= 97 && lower <= 102) value = value * 16 + lower - 87;
    else return -1;
  }
  return value;
}

/** Writes a code point as UTF-8; returns the offset behind it. */
export function putCode(out: Uint8Array, at: number, code: number): number {
  if (code < 0x80) out[at++] = code;
  else if (code < 0x800) {
    out[at++] = 0xc0 | (code >> 6);
    out[at++] = 0x80 | (code & 63);
  } else if (code < 0x10000) {
    out[at++] = 0xe0 | (code >> 12);
    out[at++] = 0x80 | ((code >> 6) & 63);
    out[at++] = 0x80 | (code & 63);
  } else {
    out[at++] = 0xf0 | (code >> 18);
    out[at++] = 0x80 | ((code >> 12) & 63);
    out[at++] = 0x80 | ((code >> 6) & 63);
    out[at++] = 0x80 | (code & 63);
  }
  return at;
}
