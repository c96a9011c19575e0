import { invalidArgument } from "@skald/model";
import type { TextArena } from "./push-rows.js";

const mark = 0x22;
const backslash = 0x5c;
const firstPlain = 0x20;
const two32 = 0x1_0000_0000;
/** 64 bits have 20 digits, which are read in two parts. */
const headDigits = 11;
const tailDigits = 9;
/** Deeper nested objects and arrays are refused. */
export const maxOtlpJsonDepth = 256;

/** Scans JSON text in bytes. Throws invalid_argument for malformed text. */
export class JsonScanner {
  readonly bytes: Uint8Array;
  at = 0;
  /** Where the text ends; nothing behind it is read. */
  limit: number;
  /** Whether the last string that was skipped has escapes. */
  hasEscapes = false;
  /** Halves of the last whole number, without its sign. */
  low = 0;
  high = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    this.limit = bytes.length;
  }

  /** Skips white space and returns the byte behind it, or -1 at the end. */
  peek(): number {
    for (; this.at < this.limit; this.at++) {
      const byte = this.bytes[this.at]!;
      if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return byte;
    }
    return -1;
  }

  /** Skips a byte when it comes next. */
  accept(byte: number): boolean {
    if (this.peek() !== byte) return false;
    this.at++;
    return true;
  }

  expect(byte: number): void {
    if (!this.accept(byte)) throw this.error(`expected '${String.fromCharCode(byte)}'`);
  }

  /** Skips `null` when it comes next. */
  acceptNull(): boolean {
    if (this.peek() !== 0x6e) return false;
    this.#word("null");
    return true;
  }

  /** Skips one of some texts when it comes next. */
  acceptText(texts: readonly Uint8Array[]): boolean {
    for (const text of texts) {
      let i = 0;
      while (i < text.length && this.bytes[this.at + i] === text[i]) i++;
      if (i < text.length) continue;
      this.at += i;
      return true;
    }
    return false;
  }

  bool(): boolean {
    const isTrue = this.peek() === 0x74;
    this.#word(isTrue ? "true" : "false");
    return isTrue;
  }

  /** Returns the text of a number, which may be between quotes. */
  number(): string {
    const isQuoted = this.accept(mark);
    if (!isQuoted) this.peek();
    const start = this.at;
    while (isNumberByte(this.bytes[this.at] ?? 0)) this.at++;
    const text = asciiOf(this.bytes, start, this.at);
    if (text === "" || (isQuoted && this.bytes[this.at++] !== mark)) {
      throw this.error("expected a number");
    }
    return text;
  }

  /** Reads a whole number below 2^64, which may be between quotes, into `low` and `high`; returns whether it has a minus. */
  integer(): boolean {
    const isQuoted = this.accept(mark);
    const isNegative = this.peek() === 0x2d;
    if (isNegative) this.at++;
    const start = this.at;
    let head = 0;
    let tail = 0;
    for (let digit = this.#digit(); digit >= 0; digit = this.#digit()) {
      if (this.at - start < headDigits) head = head * 10 + digit;
      else tail = tail * 10 + digit;
      this.at++;
    }
    const digits = this.at - start;
    const isEnd = isQuoted
      ? this.bytes[this.at++] === mark
      : !isNumberByte(this.bytes[this.at] ?? 0);
    if (digits === 0 || !isEnd) throw this.error("expected a whole number");
    if (digits > headDigits + tailDigits) throw this.error("number out of range");
    this.#setProduct(head, 10 ** Math.max(0, digits - headDigits), tail);
    return isNegative;
  }

  #digit(): number {
    const byte = this.bytes[this.at] ?? 0;
    return byte >= 0x30 && byte <= 0x39 ? byte - 0x30 : -1;
  }

  /** Sets `low` and `high` to `head * power + tail`: each product of halves is exact as a double. */
  #setProduct(head: number, power: number, tail: number): void {
    const upper = Math.floor(head / 0x10000) * power;
    const lower = (upper % 0x10000) * 0x10000 + (head % 0x10000) * power + tail;
    this.high = Math.floor(upper / 0x10000) + Math.floor(lower / two32);
    this.low = lower % two32;
    if (this.high >= two32) throw this.error("number out of range");
  }

  /** Returns the text of a short string. */
  string(arena: TextArena): string {
    const start = arena.end;
    this.text(arena);
    const text = asciiOf(arena.bytes, start, arena.end);
    arena.end = start;
    return text;
  }

  /** Appends the text of a string to an arena. */
  text(arena: TextArena): void {
    this.expect(mark);
    const { bytes } = this;
    for (;;) {
      const start = this.at;
      let at = start;
      let byte = bytes[at]!;
      while (byte !== mark && byte !== backslash && byte >= firstPlain) byte = bytes[++at]!;
      if (at > start) arena.copy(bytes, start, at - start);
      this.at = at + 1;
      if (byte === mark) return;
      if (byte !== backslash) throw this.error("invalid character in a string");
      this.#escape(arena);
    }
  }

  /** Skips any value. */
  skip(depth: number): void {
    if (depth > maxOtlpJsonDepth) throw this.tooDeep();
    const byte = this.peek();
    if (byte === mark) this.#skipString();
    else if (byte === 0x7b || byte === 0x5b) this.#skipList(byte, depth);
    else if (byte === 0x74 || byte === 0x66) this.bool();
    else if (!this.acceptNull()) this.#skipNumber();
  }

  /** Throws unless only white space follows. */
  end(): void {
    if (this.peek() !== -1) throw this.error("unexpected text behind the value");
  }

  tooDeep(): Error {
    return this.error(`more than ${maxOtlpJsonDepth} levels of nesting`);
  }

  error(what: string): Error {
    return invalidArgument(`invalid JSON at byte ${this.at}: ${what}`);
  }

  #skipList(open: number, depth: number): void {
    const isObject = open === 0x7b;
    const close = isObject ? 0x7d : 0x5d;
    this.at++;
    if (this.accept(close)) return;
    do {
      if (isObject) {
        this.#skipString();
        this.expect(0x3a);
      }
      this.skip(depth + 1);
    } while (this.accept(0x2c));
    this.expect(close);
  }

  #skipString(): void {
    this.expect(mark);
    this.skipText();
  }

  /** Skips the rest of a string. */
  skipText(): void {
    const { bytes, limit } = this;
    this.hasEscapes = false;
    let at = this.at;
    for (; at < limit; at++) {
      const byte = bytes[at]!;
      if (byte === mark) {
        this.at = at + 1;
        return;
      }
      if (byte < firstPlain) break;
      if (byte !== backslash) continue;
      this.hasEscapes = true;
      at++;
      if (at < limit && !isEscape(bytes, at)) throw this.error("invalid escape");
    }
    this.at = at;
    throw this.error(at < limit ? "invalid character in a string" : "unexpected end of a string");
  }

  /** Skips a number as JSON has it. */
  #skipNumber(): void {
    this.accept(0x2d);
    if (this.#digit() === 0) this.at++;
    else this.#skipDigits();
    if (this.bytes[this.at] === 0x2e) {
      this.at++;
      this.#skipDigits();
    }
    if (((this.bytes[this.at] ?? 0) | 0x20) !== 0x65) return;
    this.at++;
    const sign = this.bytes[this.at];
    if (sign === 0x2b || sign === 0x2d) this.at++;
    this.#skipDigits();
  }

  #skipDigits(): void {
    const start = this.at;
    while (this.#digit() >= 0) this.at++;
    if (this.at === start) throw this.error("expected a value");
  }

  #escape(arena: TextArena): void {
    const letter = String.fromCharCode(this.bytes[this.at++] ?? 0);
    if (letter !== "u") {
      const plain = escapes[letter];
      if (plain === undefined) throw this.error("invalid escape");
      arena.byte(plain);
      return;
    }
    const first = this.#hex4();
    const isHigh = first >= 0xd800 && first < 0xdc00;
    if (isHigh && this.bytes[this.at] === backslash && this.bytes[this.at + 1] === 0x75) {
      const before = this.at;
      this.at += 2;
      const second = this.#hex4();
      if (second >= 0xdc00 && second < 0xe000) {
        arena.utf8(String.fromCharCode(first, second));
        return;
      }
      this.at = before;
    }
    arena.utf8(String.fromCharCode(first));
  }

  #hex4(): number {
    const text = asciiOf(this.bytes, this.at, this.at + 4);
    if (!/^[0-9a-fA-F]{4}$/.test(text)) throw this.error("invalid escape");
    this.at += 4;
    return Number.parseInt(text, 16);
  }

  #word(word: string): void {
    const end = this.at + word.length;
    if (asciiOf(this.bytes, this.at, end) !== word) throw this.error("unexpected character");
    this.at = end;
  }
}

/** Whether what stands behind a backslash ends it well. */
function isEscape(bytes: Uint8Array, at: number): boolean {
  if (bytes[at] !== 0x75) return escapeLetters[bytes[at]!] === 1;
  for (let i = at + 1; i <= at + 4; i++) {
    const byte = bytes[i] ?? 0;
    const letter = byte | 0x20;
    if (!((byte >= 0x30 && byte <= 0x39) || (letter >= 0x61 && letter <= 0x66))) return false;
  }
  return true;
}

const escapes: Readonly<Record<string, number>> = {
  '"': 0x22,
  "\\": 0x5c,
  "/": 0x2f,
  b: 0x08,
  f: 0x0c,
  n: 0x0a,
  r: 0x0d,
  t: 0x09,
};

const escapeLetters = new Uint8Array(0x80);
for (const letter of Object.keys(escapes)) escapeLetters[letter.charCodeAt(0)] = 1;

/** Digits, signs, the dot, and letters as in `1e9`, `NaN` and `-Infinity`. */
function isNumberByte(byte: number): boolean {
  if (byte >= 0x30 && byte <= 0x39) return true;
  return byte === 0x2b || byte === 0x2d || byte === 0x2e || (byte >= 0x41 && (byte | 0x20) <= 0x7a);
}

/** A range of bytes as text, one character each. */
export function asciiOf(bytes: Uint8Array, start: number, end: number): string {
  const stop = Math.min(end, bytes.length);
  if (start >= stop) return "";
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, stop - start).toString("latin1");
}
