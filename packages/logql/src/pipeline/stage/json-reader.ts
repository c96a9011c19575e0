import { type Arena, blankBrokenUtf8, hasByte } from "../row/bytes.js";

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
  colon: 8,
} as const;

/** Answered beside the faults: the object or array is closed. */
export const jsonClosed = -1;

export const jsonFaultText: readonly string[] = [
  "",
  "Malformed JSON error",
  "Value is string, but can't find closing '\"' symbol",
  "Value is array, but can't find closing ']' symbol",
  "Value looks like object, but can't find closing '}' symbol",
  "Unknown value type",
  "Encountered an invalid escape sequence in a string",
  "Value is nested too deeply",
  "Malformed JSON error",
];

/** What the value is that was read last. */
export const jsonValue = { string: 0, word: 1, null: 2, object: 3, array: 4 } as const;

/**
 * Reads one object or array item by item, as tolerant as clients know it: what stands behind its end, blanks, a comma
 * before the end and anything within values that are not gone into do not matter. For each item call `nextKey`, or in
 * an array `nextItem`, then `readValue`; each answers a fault. To go into a value, open it with the same reader and call
 * `resume` afterwards.
 */
export class JsonReader {
  bytes: Uint8Array = new Uint8Array(0);
  /** Where reading goes on. */
  at = 0;
  end = 0;
  keyStart = 0;
  keyEnd = 0;
  keyEscaped = false;
  /** Range of the value, of a string without its quotes. */
  valueStart = 0;
  valueEnd = 0;
  kind: number = jsonValue.string;
  /** The string has no escapes and is ASCII. */
  isPlain = false;
  #isFirst = true;

  /** Begins to read what the range begins with: an object, or an array (bracket 91). */
  open(bytes: Uint8Array, from: number, end: number, bracket = 123): number {
    this.bytes = bytes;
    this.end = end;
    this.#isFirst = true;
    let at = skipBlanks(bytes, from, end);
    if (at >= end || bytes[at] !== bracket) return jsonFault.object;
    at = skipBlanks(bytes, at + 1, end);
    this.at = at;
    return at >= end ? jsonFault.json : jsonFault.none;
  }

  /** Continues at an offset, at or behind a value that was opened, in a text that ends before `end`. */
  resume(at: number, end: number): void {
    this.at = at;
    this.end = end;
    this.#isFirst = false;
  }

  /** Reads a key and its colon; also answers `jsonClosed`, and `colon` where only that is missing. */
  nextKey(): number {
    const { bytes, end } = this;
    let { at } = this;
    if (this.#isFirst) this.#isFirst = false;
    else {
      if (at >= end || bytes[at] !== 44) {
        at = skipBlanks(bytes, at, end);
        if (at >= end) return jsonFault.array;
        if (bytes[at] === 125) return jsonClosed;
        if (bytes[at] !== 44) return jsonFault.object;
      }
      at++;
      if (at >= end || bytes[at] !== 34) {
        at = skipBlanks(bytes, at, end);
        if (at >= end) return jsonFault.array;
      }
    }
    if (bytes[at] !== 34) return bytes[at] === 125 ? jsonClosed : jsonFault.object;
    at++;
    this.keyStart = at;
    let escaped = false;
    while (at < end) {
      const c = bytes[at]!;
      if (c === 34) break;
      if (c === 92) {
        escaped = true;
        at++;
      }
      at++;
    }
    if (at >= end) return jsonFault.json;
    this.keyEnd = at;
    this.keyEscaped = escaped;
    at++;
    if (at >= end || bytes[at] !== 58) {
      at = skipBlanks(bytes, at, end);
      if (at >= end || bytes[at] !== 58) return jsonFault.colon;
    }
    at++;
    if (at < end && bytes[at]! <= 32) at = skipBlanks(bytes, at, end);
    this.at = at;
    return jsonFault.none;
  }

  /** Moves to the next item; also answers `jsonClosed`. */
  nextItem(close: number): number {
    const { bytes, end } = this;
    let { at } = this;
    if (this.#isFirst) this.#isFirst = false;
    else {
      if (at >= end || bytes[at] !== 44) {
        at = skipBlanks(bytes, at, end);
        if (at >= end) return jsonFault.array;
        if (bytes[at] === close) return jsonClosed;
        if (bytes[at] !== 44) return jsonFault.object;
      }
      at = skipBlanks(bytes, at + 1, end);
      if (at >= end) return jsonFault.array;
      this.at = at;
    }
    return bytes[at] === close ? jsonClosed : jsonFault.none;
  }

  readValue(): number {
    const { bytes, end } = this;
    let { at } = this;
    if (at >= end) return jsonFault.json;
    if (bytes[at] !== 34) return this.#readOther(bytes, at, end);
    this.valueStart = ++at;
    let bits = 0;
    while (at < end) {
      const c = bytes[at]!;
      if (c === 34) break;
      if (c === 92) {
        bits = 128;
        at++;
      }
      bits |= c;
      at++;
    }
    if (at >= end) return jsonFault.string;
    this.kind = jsonValue.string;
    this.isPlain = bits < 128;
    this.valueEnd = at;
    this.at = at + 1;
    return jsonFault.none;
  }

  #readOther(bytes: Uint8Array, at: number, end: number): number {
    const c = bytes[at]!;
    this.valueStart = at;
    if (c === 123 || c === 91) {
      const close = blockEnd(bytes, at, end);
      if (close < 0) return c === 123 ? jsonFault.object : jsonFault.array;
      this.kind = c === 123 ? jsonValue.object : jsonValue.array;
      this.valueEnd = close;
    } else {
      this.valueEnd = tokenEnd(bytes, at, end);
      const kind = wordKind(bytes, at, this.valueEnd);
      if (kind < 0) return jsonFault.unknown;
      this.kind = kind;
    }
    this.at = this.valueEnd;
    return jsonFault.none;
  }
}

function skipBlanks(bytes: Uint8Array, at: number, end: number): number {
  while (at < end) {
    const c = bytes[at]!;
    if (c !== 32 && c !== 10 && c !== 13 && c !== 9) break;
    at++;
  }
  return at;
}

/** Offset of the closing quote of a string whose text begins at `at`, or -1. */
function stringEnd(bytes: Uint8Array, at: number, end: number): number {
  for (let i = at; i < end; i++) {
    const c = bytes[i]!;
    if (c === 34) return i;
    if (c === 92) i++;
  }
  return -1;
}

/** Offset behind the bracket that closes the one at `at`, or -1; brackets in strings do not count. */
function blockEnd(bytes: Uint8Array, at: number, end: number): number {
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
function tokenEnd(bytes: Uint8Array, at: number, end: number): number {
  let i = at;
  for (; i < end; i++) {
    const c = bytes[i]!;
    if (c === 44 || c === 125 || c === 93 || c === 32 || c === 10 || c === 13 || c === 9) break;
  }
  return i;
}

/** What stands in a range that is neither string, object nor array; -1 for what is no value. */
function wordKind(bytes: Uint8Array, at: number, end: number): number {
  const c = bytes[at]!;
  if (at === end) return -1;
  if (c === 45 || (c >= 48 && c <= 57)) return jsonValue.word;
  if (isWord(bytes, at, end, trueWord) || isWord(bytes, at, end, falseWord)) return jsonValue.word;
  return isWord(bytes, at, end, nullWord) ? jsonValue.null : -1;
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
 * Appends the text of a string without its escapes. Returns its start, or -1 when an escape is wrong; then nothing is
 * appended. Half a surrogate pair is wrong in JSON; in logfmt it is U+FFFD.
 */
export function unescapeInto(
  arena: Arena,
  bytes: Uint8Array,
  from: number,
  to: number,
  isLogfmt = false,
): number {
  arena.reserve(to - from);
  const out = arena.bytes;
  const start = arena.used;
  let at = start;
  for (let i = from; i < to; i++) {
    const c = bytes[i]!;
    if (c !== 92) {
      if (isLogfmt && c < 32) return -1;
      out[at++] = c;
      continue;
    }
    if (++i >= to) return -1;
    const letter = bytes[i]!;
    const plain = isLogfmt && letter === 39 ? letter : plainEscape(letter);
    if (plain >= 0) {
      out[at++] = plain;
      continue;
    }
    let code = letter === 117 ? hex4(bytes, i + 1, to) : -1;
    if (code < 0) return -1;
    i += 4;
    if (code >= 0xd800 && code <= 0xdfff) {
      const isHigh = code <= 0xdbff && bytes[i + 1] === 92 && bytes[i + 2] === 117;
      const low = isHigh ? hex4(bytes, i + 3, to) : -1;
      if (low >= 0xdc00 && low <= 0xdfff) {
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        i += 6;
      } else if (isLogfmt) code = 0xfffd;
      else return -1;
    }
    at = putCode(out, at, code);
  }
  arena.used = at;
  return start;
}

/** The byte that a letter behind a backslash stands for, or -1. */
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
function hex4(bytes: Uint8Array, at: number, end: number): number {
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
function putCode(out: Uint8Array, at: number, code: number): number {
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
