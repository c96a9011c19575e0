import type { Arena } from "../../row/bytes.js";
import { blankBrokenUtf8 } from "../../row/utf8-blank.js";

/** The reasons why a JSON text cannot be read on, with their texts; numbers so that none is thrown per row. */
export const jsonFault = {
  none: 0,
  json: 1,
  string: 2,
  array: 3,
  object: 4,
  unknown: 5,
  escape: 6,
  deep: 7,
} as const;

export const jsonFaultText: readonly string[] = [
  "",
  "Malformed JSON error",
  "Value is string, but can't find closing '\"' symbol",
  "Value is array, but can't find closing ']' symbol",
  "Value looks like object, but can't find closing '}' symbol",
  "Unknown value type",
  "Encountered an invalid escape sequence in a string",
  "Value is nested too deeply",
];

/** Deeper objects are not read: each level is scanned once more. */
export const jsonDepthMax = 128;

export function skipBlanks(bytes: Uint8Array, at: number, end: number): number {
  while (at < end) {
    const c = bytes[at]!;
    if (c !== 32 && c !== 10 && c !== 13 && c !== 9) break;
    at++;
  }
  return at;
}

/** Offset of the closing quote of a string whose text begins at `at`, or -1. */
export function stringEnd(bytes: Uint8Array, at: number, end: number): number {
  for (let i = at; i < end; i++) {
    const c = bytes[i]!;
    if (c === 34) return i;
    if (c === 92) i++;
  }
  return -1;
}

/** Offset behind the bracket that closes the one at `at`, or -1; brackets in strings do not count. */
export function blockEnd(bytes: Uint8Array, at: number, end: number): number {
  const open = bytes[at]!;
  const close = open + 2;
  let level = 0;
  for (let i = at; i < end; i++) {
    const c = bytes[i]!;
    if (c === 34) {
      i = stringEnd(bytes, i + 1, end);
      if (i < 0) return -1;
    } else if (c === open) level++;
    else if (c === close && --level === 0) return i + 1;
  }
  return -1;
}

/** Offset behind a number or word. */
export function tokenEnd(bytes: Uint8Array, at: number, end: number): number {
  let i = at;
  for (; i < end; i++) {
    const c = bytes[i]!;
    if (c === 44 || c === 125 || c === 93 || c === 32 || c === 10 || c === 13 || c === 9) break;
  }
  return i;
}

export type TokenKind = "scalar" | "null" | "unknown";

/** What stands in a range that is neither string, object nor array. */
export function tokenKind(bytes: Uint8Array, at: number, end: number): TokenKind {
  const c = bytes[at];
  if (c === undefined || at === end) return "unknown";
  if (c === 45 || (c >= 48 && c <= 57)) return "scalar";
  if (isWord(bytes, at, end, trueWord) || isWord(bytes, at, end, falseWord)) return "scalar";
  return isWord(bytes, at, end, nullWord) ? "null" : "unknown";
}

const trueWord = [116, 114, 117, 101];
const falseWord = [102, 97, 108, 115, 101];
const nullWord = [110, 117, 108, 108];

function isWord(bytes: Uint8Array, at: number, end: number, word: readonly number[]): boolean {
  if (end - at !== word.length) return false;
  for (let i = 0; i < word.length; i++) if (bytes[at + i] !== word[i]) return false;
  return true;
}

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
  if (bytes.subarray(from, to).includes(92)) {
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

function plainEscape(letter: number): number {
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
