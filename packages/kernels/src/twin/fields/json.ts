import {
  type FieldColumns,
  fieldKind,
  type JsonFieldOptions,
  maxFieldDepth,
} from "../../fields/columns.js";
import type { RowSelection } from "../../search/selection.js";
import { quoteEnd } from "../quoted.js";
import { FieldNames, isOddKey, isWide, labelNameOf, matchesName } from "./names.js";

/**
 * Finds the fields with these label names in lines that are JSON objects: strings, numbers and booleans, also of
 * objects within, whose names are joined by `_`; of equal names the first such value. Lines that turn out to be
 * malformed and those with odd keys are not read.
 */
export function scanJsonFields(
  bytes: Uint8Array,
  offsets: Uint32Array,
  selection: RowSelection,
  names: readonly string[],
  out: FieldColumns,
  options: JsonFieldOptions,
): void {
  const scan = new JsonFieldScan(
    bytes,
    new FieldNames(names, out, options.enough),
    options.complete,
  );
  for (let i = 0; i < selection.count; i++) {
    const row = selection.rows[i]!;
    const end = Math.min(offsets[row + 1]!, bytes.length);
    out.isRead[i] = scan.readRow(i, Math.min(offsets[row]!, end), end) ? 1 : 0;
  }
}

/** How a line or an object in it ends: as it should, early because nothing more is wanted, or not to be judged. */
const ends = { well: 0, early: 1, unread: 2 } as const;

class JsonFieldScan {
  readonly #bytes: Uint8Array;
  readonly #fields: FieldNames;
  readonly #complete: boolean;
  #depth = 0;
  /** Where the value read last begins and ends, without the quotes of a string; and where the cursor goes on. */
  #start = 0;
  #end = 0;
  #next = 0;
  #escaped = false;

  constructor(bytes: Uint8Array, fields: FieldNames, complete: boolean) {
    this.#bytes = bytes;
    this.#fields = fields;
    this.#complete = complete;
  }

  readRow(row: number, start: number, end: number): boolean {
    this.#fields.startRow(row);
    this.#depth = 0;
    const all = this.#fields.names.map((_, field) => field);
    const isRead = this.#readObject(start, end, [], all) !== ends.unread;
    if (!isRead) this.#fields.clear();
    return isRead;
  }

  /** `prefix`: the name of the object and an underscore; `live`: the fields whose names begin so. */
  #readObject(
    start: number,
    end: number,
    prefix: readonly number[],
    live: readonly number[],
  ): number {
    const bytes = this.#bytes;
    if (++this.#depth > maxFieldDepth) return ends.unread;
    let at = this.#skipBlanks(start, end);
    if (at >= end || bytes[at] !== 0x7b) return ends.unread;
    at = this.#skipBlanks(at + 1, end);
    if (at >= end) return ends.unread;
    while (bytes[at] !== 0x7d) {
      if (bytes[at] !== 0x22) return ends.unread;
      const key = at + 1;
      const keyEnd = this.#stringEnd(key, end);
      if (keyEnd < 0) return ends.unread;
      if (live.length > 0 ? isOddKey(bytes, key, keyEnd) : this.#escaped) return ends.unread;
      at = this.#skipBlanks(keyEnd + 1, end);
      if (at >= end || bytes[at] !== 0x3a) return ends.unread;
      at = this.#skipBlanks(at + 1, end);
      const ending = this.#readMember(key, keyEnd, at, end, prefix, live);
      if (ending !== ends.well) return ending;
      at = this.#skipBlanks(this.#next, end);
      if (at >= end) return ends.unread;
      if (bytes[at] === 0x7d) break;
      if (bytes[at] !== 0x2c) return ends.unread;
      at = this.#skipBlanks(at + 1, end);
      if (at >= end) return ends.unread;
    }
    this.#depth--;
    return ends.well;
  }

  /** Reads the value at `at` and notes it where it is wanted; `#next` is behind it then. */
  #readMember(
    key: number,
    keyEnd: number,
    at: number,
    end: number,
    prefix: readonly number[],
    live: readonly number[],
  ): number {
    const byte = at < end ? this.#bytes[at]! : -1;
    if (byte === -1) return ends.unread;
    if (byte === 0x7b) return this.#readInner(key, keyEnd, at, end, prefix, live);
    if (byte === 0x5b) {
      this.#next = this.#blockEnd(at, end, 0x5b, 0x5d);
      return this.#next < 0 ? ends.unread : ends.well;
    }
    const kind = byte === 0x22 ? this.#readString(at, end) : this.#readWord(at, end);
    if (kind < 0) return ends.unread;
    if (kind === fieldKind.absent) return ends.well;
    const name = labelNameOf(this.#bytes, key, keyEnd, prefix);
    for (const field of live) {
      if (name.length === 0 || this.#fields.has(field)) continue;
      if (!matchesName(this.#fields.names[field]!, name, false)) continue;
      this.#fields.set(field, kind, this.#start, this.#end);
    }
    return this.#fields.hasEnough ? ends.early : ends.well;
  }

  /** An object is read only once its end is found; then what is in it counts even where the line breaks off later. */
  #readInner(
    key: number,
    keyEnd: number,
    at: number,
    end: number,
    prefix: readonly number[],
    live: readonly number[],
  ): number {
    const close = this.#blockEnd(at, end, 0x7b, 0x7d);
    if (close < 0) return ends.unread;
    const name = labelNameOf(this.#bytes, key, keyEnd, prefix);
    const inner =
      name.length === 0
        ? live
        : live.filter((field) => matchesName(this.#fields.names[field]!, name, true));
    this.#next = close;
    if (inner.length === 0 && !this.#complete) return ends.well;
    const below = name.length === 0 ? [] : [...name, 0x5f];
    const ending = this.#readObject(at, close, below, inner);
    this.#next = close;
    return ending;
  }

  #readString(at: number, end: number): number {
    const close = this.#stringEnd(at + 1, end);
    this.#start = at + 1;
    this.#end = close;
    this.#next = close + 1;
    if (close < 0) return -1;
    return this.#escaped || isWide(this.#bytes, at + 1, close) ? fieldKind.coded : fieldKind.plain;
  }

  /** A number, true, false or null, which is absent; -1 for anything else. */
  #readWord(from: number, end: number): number {
    const bytes = this.#bytes;
    let at = from;
    while (at < end && !isWordEnd(bytes[at]!)) at++;
    this.#start = from;
    this.#end = at;
    this.#next = at;
    if (this.#isWord(from, at, "null")) return fieldKind.absent;
    if (this.#isWord(from, at, "true") || this.#isWord(from, at, "false")) return fieldKind.plain;
    const first = bytes[from]!;
    return at > from && (first === 0x2d || (first >= 0x30 && first <= 0x39)) ? fieldKind.plain : -1;
  }

  #isWord(from: number, to: number, word: string): boolean {
    if (to - from !== word.length) return false;
    for (let i = 0; i < word.length; i++) {
      if (this.#bytes[from + i] !== word.charCodeAt(i)) return false;
    }
    return true;
  }

  /** Behind the bracket that closes the one at `from`, counting only these two kinds outside of strings; -1 without. */
  #blockEnd(from: number, end: number, open: number, close: number): number {
    let level = 0;
    for (let at = from; at < end; at++) {
      const byte = this.#bytes[at]!;
      if (byte === 0x22) {
        at = quoteEnd(this.#bytes, at + 1, end);
        if (at < 0) return -1;
      } else if (byte === open) level++;
      else if (byte === close && --level === 0) return at + 1;
    }
    return -1;
  }

  /** Position of the closing quote, -1 without one; notes whether there were escapes. */
  #stringEnd(from: number, end: number): number {
    const close = quoteEnd(this.#bytes, from, end);
    this.#escaped = this.#bytes.subarray(from, Math.max(from, close)).includes(0x5c);
    return close;
  }

  #skipBlanks(from: number, end: number): number {
    let at = from;
    while (at < end && isBlank(this.#bytes[at]!)) at++;
    return at;
  }
}

function isBlank(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** Ends of a number or word: blanks, comma and the closing brackets. */
function isWordEnd(byte: number): boolean {
  return isBlank(byte) || byte === 0x2c || byte === 0x7d || byte === 0x5d;
}
