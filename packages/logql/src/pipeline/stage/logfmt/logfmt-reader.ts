import { type Arena, hasByte } from "../../row/bytes.js";
import { blankBrokenUtf8 } from "../../row/utf8-blank.js";
import { hex4, plainEscape, putCode } from "../json/string.js";

const apostrophe = 39;

/**
 * Reads `k=v k2="quoted" flag` pair by pair from bytes. After `next()` the key is
 * `bytes[keyStart .. keyEnd)` and the value `valueBytes[valueStart .. valueEnd)`; at a fault the rest of the word is
 * skipped by the next call.
 */
export class LogfmtReader {
  keyStart = 0;
  keyEnd = 0;
  valueBytes: Uint8Array = new Uint8Array(0);
  valueStart = 0;
  valueEnd = 0;
  /** Set when `next` answers "fault". */
  faultText = "";
  /** Offset in the line, from 0. */
  faultAt = 0;
  readonly #arena: Arena;
  #bytes: Uint8Array = new Uint8Array(0);
  #at = 0;
  #end = 0;
  #skips = false;

  constructor(arena: Arena) {
    this.#arena = arena;
  }

  begin(bytes: Uint8Array, start: number, end: number): void {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
    this.#skips = false;
  }

  next(): "pair" | "fault" | "end" {
    const bytes = this.#bytes;
    const end = this.#end;
    let at = this.#at;
    if (this.#skips) {
      while (at < end && bytes[at]! > 32) at++;
      this.#skips = false;
    }
    while (at < end && bytes[at]! <= 32) at++;
    if (at >= end) return "end";
    this.keyStart = at;
    let c = 0;
    let bits = 0;
    while (at < end) {
      c = bytes[at]!;
      if (c === 61 || c === 34 || c <= 32) break;
      bits |= c;
      at++;
    }
    this.keyEnd = at;
    const stop = at < end ? c : 32;
    if (stop === 34 || (stop === 61 && at === this.keyStart)) {
      return this.#fault(at, `unexpected '${String.fromCharCode(stop)}'`);
    }
    if (bits >= 128 && this.#isBroken(this.keyStart, at)) return this.#fault(at, "invalid key");
    this.valueBytes = bytes;
    this.valueStart = at;
    this.valueEnd = at;
    this.#at = at;
    if (stop !== 61) return "pair";
    at++;
    return at < end && bytes[at] === 34 ? this.#quoted(at) : this.#bare(at);
  }

  /** Makes a value that another scan found (escapes sound, without its quotes) the one that was read last. */
  decode(bytes: Uint8Array, from: number, to: number): void {
    const isQuoted = bytes[from - 1] === 34;
    if (isQuoted && hasByte(bytes, from, to, 92)) {
      const start = unquoteInto(this.#arena, bytes, from, to);
      this.#setValue(this.#arena.bytes, start, this.#arena.used, 128);
    } else this.#setValue(bytes, from, to, 128);
  }

  #bare(from: number): "pair" | "fault" {
    const bytes = this.#bytes;
    const end = this.#end;
    let at = from;
    let bits = 0;
    while (at < end) {
      const c = bytes[at]!;
      if (c <= 32) break;
      if (c === 61 || c === 34) return this.#fault(at, `unexpected '${String.fromCharCode(c)}'`);
      bits |= c;
      at++;
    }
    this.#at = at;
    this.#setValue(bytes, from, at, bits);
    return "pair";
  }

  #quoted(open: number): "pair" | "fault" {
    const bytes = this.#bytes;
    const end = this.#end;
    let at = open + 1;
    let bits = 0;
    let escaped = false;
    while (at < end) {
      const c = bytes[at]!;
      if (c === 34) break;
      if (c === 92) {
        escaped = true;
        at++;
      }
      bits |= c;
      at++;
    }
    if (at >= end) return this.#fault(end, "unterminated quoted value");
    this.#at = at + 1;
    if (!escaped) {
      this.#setValue(bytes, open + 1, at, bits);
      return "pair";
    }
    const start = unquoteInto(this.#arena, bytes, open + 1, at);
    if (start < 0) return this.#fault(at + 1, "invalid quoted value");
    // an escape may have made a sign that is to become a blank
    this.#setValue(this.#arena.bytes, start, this.#arena.used, 128);
    return "pair";
  }

  #setValue(bytes: Uint8Array, start: number, end: number, bits: number): void {
    const repaired = bits < 128 ? -1 : blankBrokenUtf8(this.#arena, bytes, start, end);
    this.valueBytes = repaired < 0 ? bytes : this.#arena.bytes;
    this.valueStart = repaired < 0 ? start : repaired;
    this.valueEnd = repaired < 0 ? end : this.#arena.used;
  }

  #isBroken(start: number, end: number): boolean {
    return blankBrokenUtf8(this.#arena, this.#bytes, start, end) >= 0;
  }

  #fault(at: number, text: string): "fault" {
    this.faultText = text;
    this.faultAt = at;
    this.#at = at;
    this.#skips = true;
    return "fault";
  }
}

/** Appends a quoted value without its escapes; -1 when one is wrong or a control character stands beside them. */
function unquoteInto(arena: Arena, bytes: Uint8Array, from: number, to: number): number {
  arena.reserve(to - from);
  const out = arena.bytes;
  const start = arena.used;
  let at = start;
  for (let i = from; i < to; i++) {
    const c = bytes[i]!;
    if (c < 32) return -1;
    if (c !== 92) {
      out[at++] = c;
      continue;
    }
    const letter = bytes[++i]!;
    const plain = letter === apostrophe ? letter : plainEscape(letter);
    if (plain >= 0) {
      out[at++] = plain;
      continue;
    }
    let code = letter === 117 ? hex4(bytes, i + 1, to) : -1;
    if (code < 0) return -1;
    i += 4;
    if (code >= 0xd800 && code <= 0xdfff) {
      const isPair = code <= 0xdbff && bytes[i + 1] === 92 && bytes[i + 2] === 117;
      const low = isPair ? hex4(bytes, i + 3, to) : -1;
      if (low >= 0xdc00 && low <= 0xdfff) {
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        i += 6;
      } else code = 0xfffd;
    }
    at = putCode(out, at, code);
  }
  arena.used = at;
  return start;
}
