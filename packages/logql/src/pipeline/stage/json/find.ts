import { Arena, bytesEqual } from "../../row/bytes.js";
import { blockEnd, skipBlanks, stringEnd, tokenEnd, tokenKind, unescapeInto } from "./bytes.js";

/** One step of a path: a member name, or an index. */
export type PathStep = { readonly bytes: Uint8Array } | number;

/** Finds the value at a path; tolerant of what stands behind it. */
export class JsonFinder {
  /** Range of the value that `find` found; of a string without its quotes. */
  start = 0;
  end = 0;
  isString = false;
  isNull = false;
  /** Offset behind the value. */
  #next = 0;
  readonly #arena = new Arena();

  /** Of equal names the first that leads to a value counts. */
  find(bytes: Uint8Array, from: number, end: number, path: readonly PathStep[], step = 0): boolean {
    const head = path[step]!;
    const isIndex = typeof head === "number";
    const close = isIndex ? 93 : 125;
    let at = skipBlanks(bytes, from, end);
    if (at >= end || bytes[at] !== (isIndex ? 91 : 123)) return false;
    at = skipBlanks(bytes, at + 1, end);
    for (let index = 0; at < end && bytes[at] !== close; index++) {
      let hit = index === head;
      if (!isIndex) {
        const keyEnd = bytes[at] === 34 ? stringEnd(bytes, at + 1, end) : -1;
        if (keyEnd < 0) return false;
        hit = this.#isKey(bytes, at + 1, keyEnd, head.bytes);
        at = skipBlanks(bytes, keyEnd + 1, end);
        if (at >= end || bytes[at] !== 58) return false;
        at++;
      }
      if (hit) {
        const isLast = step + 1 === path.length;
        if (isLast ? this.#read(bytes, at, end) : this.find(bytes, at, end, path, step + 1))
          return true;
      }
      if (!this.#read(bytes, at, end)) return false;
      at = skipBlanks(bytes, this.#next, end);
      if (at >= end || bytes[at] !== 44) return false;
      at = skipBlanks(bytes, at + 1, end);
    }
    return false;
  }

  #isKey(bytes: Uint8Array, start: number, end: number, key: Uint8Array): boolean {
    if (!hasBackslash(bytes, start, end)) return bytesEqual(bytes, start, end, key);
    this.#arena.used = 0;
    const from = unescapeInto(this.#arena, bytes, start, end);
    return from >= 0 && bytesEqual(this.#arena.bytes, from, this.#arena.used, key);
  }

  /** Reads the value at `from`; false when it is malformed. */
  #read(bytes: Uint8Array, from: number, end: number): boolean {
    const at = skipBlanks(bytes, from, end);
    if (at >= end) return false;
    const c = bytes[at]!;
    this.start = at;
    this.isString = false;
    this.isNull = false;
    if (c === 34) {
      const close = stringEnd(bytes, at + 1, end);
      if (close < 0) return false;
      this.start = at + 1;
      this.end = close;
      this.isString = true;
      this.#next = close + 1;
      return true;
    }
    if (c === 123 || c === 91) {
      const close = blockEnd(bytes, at, end);
      this.end = close;
      this.#next = close;
      return close >= 0;
    }
    this.end = tokenEnd(bytes, at, end);
    this.#next = this.end;
    const kind = tokenKind(bytes, at, this.end);
    this.isNull = kind === "null";
    return kind !== "unknown";
  }
}

function hasBackslash(bytes: Uint8Array, start: number, end: number): boolean {
  for (let i = start; i < end; i++) if (bytes[i] === 92) return true;
  return false;
}
