import { fail, JSON_DEPTH, JSON_END, JSON_ESCAPE, JSON_STRING, JSON_SYNTAX } from "./push/fault";

/** A cursor over JSON text that validates as it goes and unescapes strings in place; see src/twin/json-text.ts. */

const MAX_DEPTH: i32 = 512;
const arrays = memory.data(520);

/** The next byte to read, and the end of the text; 64 zero bytes follow. */
export let at: usize = 0;
export let end: usize = 0;
/** The string read last. */
export let start: usize = 0;
export let length: u32 = 0;

export function openText(from: usize, to: usize): void {
  at = from;
  end = to;
}

export function moveTo(position: usize): void {
  at = position;
}

export function failHere(code: i32): bool {
  return fail(at >= end ? JSON_END : code, at);
}

/** Skips blanks and returns the next byte without taking it, -1 at the end. */
@inline
export function peek(): i32 {
  const byte = <i32>load<u8>(at);
  return byte > 0x20 && at < end ? byte : peekBehindBlanks();
}

function peekBehindBlanks(): i32 {
  let from = at;
  while (from < end) {
    const byte = <i32>load<u8>(from);
    if (byte != 0x20 && byte != 0x0a && byte != 0x0d && byte != 0x09) {
      at = from;
      return byte;
    }
    from++;
  }
  at = from;
  return -1;
}

export function expect(byte: i32): bool {
  if (peek() != byte) return failHere(JSON_SYNTAX);
  at++;
  return true;
}

export const CLOSED: i32 = 0;
export const NEXT: i32 = 1;
export const FAILED: i32 = 2;

/** Moves on within an object or array: CLOSED, NEXT or FAILED; `first` is true before the first item. */
export function advance(first: bool, close: i32): i32 {
  const byte = peek();
  if (byte == close) {
    at++;
    return CLOSED;
  }
  if (first) return NEXT;
  if (byte != 0x2c) {
    failHere(JSON_SYNTAX);
    return FAILED;
  }
  at++;
  return NEXT;
}

export function readKey(): bool {
  if (peek() != 0x22) return failHere(JSON_SYNTAX);
  return readString() && expect(0x3a);
}

/** True when the string read last is the ASCII text at `text`. */
export function isString(text: usize, bytes: u32): bool {
  return length == bytes && memory.compare(start, text, bytes) == 0;
}

/** Position of the first quote or backslash from `from` on, or some position at or behind the end. */
@inline
export function findQuote(from: usize, stop: usize): usize {
  const quote = i8x16.splat(0x22);
  const slash = i8x16.splat(0x5c);
  for (let p = from; p < stop; p += 16) {
    const text = v128.load(p);
    const mask = i8x16.bitmask(v128.or(i8x16.eq(text, quote), i8x16.eq(text, slash)));
    if (mask != 0) return p + ctz(mask);
  }
  return stop;
}

/** Reads the string whose opening quote is at the cursor and unescapes it in place. */
export function readString(): bool {
  const from = at + 1;
  start = from;
  const hit = findQuote(from, end);
  if (hit >= end) {
    at = end;
    return fail(JSON_STRING, from - 1);
  }
  if (load<u8>(hit) != 0x22) return unescapeRest(hit);
  length = <u32>(hit - from);
  at = hit + 1;
  return true;
}

/** Skips one value of any kind, checking it; without recursion. */
export function skipValue(): bool {
  let depth = 0;
  while (true) {
    const byte = peek();
    if (byte == 0x7b || byte == 0x5b) {
      at++;
      if (++depth > MAX_DEPTH) return fail(JSON_DEPTH, at);
      store<u8>(arrays + depth, byte == 0x5b ? 1 : 0);
      const next = advance(true, byte + 2);
      if (next == FAILED) return false;
      if (next == NEXT) {
        if (byte == 0x7b && !skipKey()) return false;
        continue;
      }
      depth--;
    } else if (!skipScalar(byte)) {
      return false;
    }
    depth = closeLevels(depth);
    if (depth <= 0) return depth == 0;
  }
}

/** Closes what ends behind a value; returns the depth at which another value follows, 0 at the end, -1 on a fault. */
function closeLevels(from: i32): i32 {
  for (let depth = from; depth > 0; depth--) {
    const array = load<u8>(arrays + depth) == 1;
    const next = advance(false, array ? 0x5d : 0x7d);
    if (next == FAILED) return -1;
    if (next == NEXT) return array || skipKey() ? depth : -1;
  }
  return 0;
}

function skipKey(): bool {
  if (peek() != 0x22) return failHere(JSON_SYNTAX);
  return skipString() && expect(0x3a);
}

function skipScalar(byte: i32): bool {
  if (byte == 0x22) return skipString();
  if (byte == 0x74) return skipWord(0x74727565, 0);
  if (byte == 0x66) return skipWord(0x66616c73, 0x65);
  if (byte == 0x6e) return skipWord(0x6e756c6c, 0);
  if (byte == 0x2d || isDigit(byte)) return skipNumber();
  return failHere(JSON_SYNTAX);
}

/** Takes true, false or null: four letters big endian and a fifth or 0. */
export function skipWord(four: u32, fifth: u32): bool {
  for (let shift = 24; shift >= 0; shift -= 8) {
    if (<u32>load<u8>(at) != ((four >> shift) & 0xff)) return failHere(JSON_SYNTAX);
    at++;
  }
  if (fifth == 0) return true;
  if (<u32>load<u8>(at) != fifth) return failHere(JSON_SYNTAX);
  at++;
  return true;
}

function skipNumber(): bool {
  if (load<u8>(at) == 0x2d) at++;
  if (load<u8>(at) == 0x30) at++;
  else if (!skipDigits()) return false;
  if (load<u8>(at) == 0x2e) {
    at++;
    if (!skipDigits()) return false;
  }
  if ((load<u8>(at) | 0x20) != 0x65) return true;
  at++;
  const sign = load<u8>(at);
  if (sign == 0x2b || sign == 0x2d) at++;
  return skipDigits();
}

function skipDigits(): bool {
  if (!isDigit(load<u8>(at))) return failHere(JSON_SYNTAX);
  while (isDigit(load<u8>(at))) at++;
  return true;
}

@inline
function isDigit(byte: i32): bool {
  return <u32>(byte - 0x30) < 10;
}

function skipString(): bool {
  const open = at++;
  while (true) {
    const hit = findQuote(at, end);
    if (hit >= end) {
      at = end;
      return fail(JSON_STRING, open);
    }
    at = hit + 1;
    if (load<u8>(hit) == 0x22) return true;
    if (readEscape() < 0) return false;
  }
}

/** Goes on with a string from its first backslash: copies plain runs down behind what was unescaped. */
function unescapeRest(slash: usize): bool {
  let to = slash;
  let from = slash;
  while (true) {
    const hit = findQuote(from, end);
    if (hit >= end) {
      at = end;
      return fail(JSON_STRING, start - 1);
    }
    const run = hit - from;
    if (run > 0) {
      if (run <= 16 && from - to >= 16) v128.store(to, v128.load(from));
      else if (run < 8) for (let i: usize = 0; i < run; i++) store<u8>(to + i, load<u8>(from + i));
      else memory.copy(to, from, run);
      to += run;
    }
    at = hit + 1;
    if (load<u8>(hit) == 0x22) {
      length = <u32>(to - start);
      return true;
    }
    const point = readEscapedCodePoint();
    if (point < 0) return false;
    if (point < 0x80) store<u8>(to++, point);
    else to = writeCodePoint(point, to);
    from = at;
  }
}

/** Reads an escape and, where it is the first half of a surrogate pair, the second; -1 when it is illegal. */
@inline
function readEscapedCodePoint(): i32 {
  const unit = readEscape();
  if (unit < 0xd800 || unit > 0xdfff) return unit;
  const after = at;
  if (unit > 0xdbff || load<u8>(after) != 0x5c || load<u8>(after, 1) != 0x75) return 0xfffd;
  at = after + 1;
  const low = readEscape();
  if (low < 0) return -1;
  if (low >= 0xdc00 && low <= 0xdfff) return 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
  at = after;
  return 0xfffd;
}

/** Reads what follows a backslash: a UTF-16 code unit, or -1 after noting the fault. */
function readEscape(): i32 {
  const byte = <i32>load<u8>(at);
  let unit = 0;
  if (byte == 0x22 || byte == 0x5c || byte == 0x2f) unit = byte;
  else if (byte == 0x6e) unit = 10;
  else if (byte == 0x74) unit = 9;
  else if (byte == 0x72) unit = 13;
  else if (byte == 0x62) unit = 8;
  else if (byte == 0x66) unit = 12;
  else if (byte == 0x75) {
    at++;
    return readHex();
  } else {
    failHere(JSON_ESCAPE);
    return -1;
  }
  at++;
  return unit;
}

function readHex(): i32 {
  let unit = 0;
  for (let i = 0; i < 4; i++) {
    const digit = hexDigit(load<u8>(at));
    if (digit < 0) {
      failHere(JSON_ESCAPE);
      return -1;
    }
    unit = (unit << 4) | digit;
    at++;
  }
  return unit;
}

function hexDigit(byte: i32): i32 {
  if (isDigit(byte)) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}

function writeCodePoint(point: i32, target: usize): usize {
  let to = target;
  if (point < 0x800) {
    store<u8>(to++, 0xc0 | (point >> 6));
  } else {
    if (point < 0x10000) {
      store<u8>(to++, 0xe0 | (point >> 12));
    } else {
      store<u8>(to++, 0xf0 | (point >> 18));
      store<u8>(to++, 0x80 | ((point >> 12) & 0x3f));
    }
    store<u8>(to++, 0x80 | ((point >> 6) & 0x3f));
  }
  store<u8>(to++, 0x80 | (point & 0x3f));
  return to;
}
