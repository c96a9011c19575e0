import {
  checkFieldNames,
  type FieldColumns,
  fieldKind,
  type LogfmtFieldOptions,
  maxFieldDepth,
} from "../shared/fields.js";
import type { Kernels } from "../shared/kernels.js";

/**
 * Finds the fields with these label names in lines that are JSON objects: strings, numbers and booleans, also of
 * objects within, whose names are joined by `_`; of equal names the first such value. Lines that turn out to be
 * malformed and those with odd keys are not read.
 */
export const scanJsonFields: Kernels["scanJsonFields"] = (
  bytes,
  offsets,
  selection,
  names,
  out,
  options,
) => {
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
};

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
    let at = skipBlanks(bytes, start, end);
    if (at >= end || bytes[at] !== 0x7b) return ends.unread;
    at = skipBlanks(bytes, at + 1, end);
    if (at >= end) return ends.unread;
    while (bytes[at] !== 0x7d) {
      if (bytes[at] !== 0x22) return ends.unread;
      const key = at + 1;
      const keyEnd = this.#stringEnd(key, end);
      if (keyEnd < 0) return ends.unread;
      if (live.length > 0 ? isOddKey(bytes, key, keyEnd) : this.#escaped) return ends.unread;
      at = skipBlanks(bytes, keyEnd + 1, end);
      if (at >= end || bytes[at] !== 0x3a) return ends.unread;
      at = skipBlanks(bytes, at + 1, end);
      const ending = this.#readMember(key, keyEnd, at, end, prefix, live);
      if (ending !== ends.well) return ending;
      at = skipBlanks(bytes, this.#next, end);
      if (at >= end) return ends.unread;
      if (bytes[at] === 0x7d) break;
      if (bytes[at] !== 0x2c) return ends.unread;
      at = skipBlanks(bytes, at + 1, end);
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
      this.#next = blockEnd(this.#bytes, at, end);
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
    const close = blockEnd(this.#bytes, at, end);
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
    this.#start = from;
    this.#end = jsonWordEnd(this.#bytes, from, end);
    this.#next = this.#end;
    return kindOfWord(this.#bytes, from, this.#end);
  }

  /** Position of the closing quote, -1 without one; notes whether there were escapes. */
  #stringEnd(from: number, end: number): number {
    const close = quoteEnd(this.#bytes, from, end);
    this.#escaped = this.#bytes.subarray(from, Math.max(from, close)).includes(0x5c);
    return close;
  }
}

/** Behind the bracket that closes the one at `from`, counting only these two kinds outside of strings; -1 without. */
export function blockEnd(bytes: Uint8Array, from: number, end: number): number {
  const open = bytes[from]!;
  let level = 0;
  for (let at = from; at < end; at++) {
    const byte = bytes[at]!;
    if (byte === 0x22) {
      at = quoteEnd(bytes, at + 1, end);
      if (at < 0) return -1;
    } else if (byte === open) level++;
    else if (byte === open + 2 && --level === 0) return at + 1;
  }
  return -1;
}

/** End of a number or word of JSON. */
export function jsonWordEnd(bytes: Uint8Array, from: number, end: number): number {
  let at = from;
  while (at < end && !isWordEnd(bytes[at]!)) at++;
  return at;
}

/** Kind of what is no string, object or array: a number, true, false or null, which is absent; -1 for anything else. */
export function kindOfWord(bytes: Uint8Array, from: number, to: number): number {
  if (isWord(bytes, from, to, "null")) return fieldKind.absent;
  if (isWord(bytes, from, to, "true") || isWord(bytes, from, to, "false")) return fieldKind.plain;
  const first = bytes[from]!;
  return to > from && (first === 0x2d || isDigit(first)) ? fieldKind.plain : -1;
}

function isWord(bytes: Uint8Array, from: number, to: number, word: string): boolean {
  if (to - from !== word.length) return false;
  for (let i = 0; i < word.length; i++) if (bytes[from + i] !== word.charCodeAt(i)) return false;
  return true;
}

export function skipBlanks(bytes: Uint8Array, from: number, end: number): number {
  let at = from;
  while (at < end && isBlank(bytes[at]!)) at++;
  return at;
}

function isBlank(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** Ends of a number or word: blanks, comma and the closing brackets. */
function isWordEnd(byte: number): boolean {
  return isBlank(byte) || byte === 0x2c || byte === 0x7d || byte === 0x5d;
}

/**
 * Finds the fields with these label names in logfmt lines (`k=v k2="quoted v" flag`). Of a broken pair the rest of
 * the word is passed over; a quoted value is broken when it is not closed or an escape in it is wrong.
 */
export const scanLogfmtFields: Kernels["scanLogfmtFields"] = (
  bytes,
  offsets,
  selection,
  names,
  out,
  options,
) => {
  const scan = new LogfmtFieldScan(bytes, new FieldNames(names, out, options.enough), options);
  for (let i = 0; i < selection.count; i++) {
    const row = selection.rows[i]!;
    const end = Math.min(offsets[row + 1]!, bytes.length);
    out.isRead[i] = scan.readRow(i, Math.min(offsets[row]!, end), end) ? 1 : 0;
  }
};

class LogfmtFieldScan {
  readonly #bytes: Uint8Array;
  readonly #fields: FieldNames;
  readonly #options: LogfmtFieldOptions;
  #at = 0;
  #end = 0;

  constructor(bytes: Uint8Array, fields: FieldNames, options: LogfmtFieldOptions) {
    this.#bytes = bytes;
    this.#fields = fields;
    this.#options = options;
  }

  readRow(row: number, start: number, end: number): boolean {
    this.#fields.startRow(row);
    this.#at = start;
    this.#end = end;
    const isRead = this.#readPairs();
    if (!isRead) this.#fields.clear();
    return isRead;
  }

  #readPairs(): boolean {
    const bytes = this.#bytes;
    for (;;) {
      while (this.#at < this.#end && bytes[this.#at]! <= 0x20) this.#at++;
      if (this.#at >= this.#end) return true;
      const key = this.#at;
      const keyEnd = this.#wordEnd(key);
      if (isWide(bytes, key, keyEnd)) return false;
      const stop = keyEnd < this.#end ? bytes[keyEnd]! : 0;
      let sound = true;
      if (stop === 0x22 || (stop === 0x3d && keyEnd === key)) {
        this.#at = keyEnd;
        sound = false;
      } else if (stop === 0x3d) {
        sound = this.#readValue(key, keyEnd);
      } else {
        this.#at = keyEnd;
        this.#note(key, keyEnd, false, keyEnd, keyEnd);
      }
      if (!sound && this.#options.strict) return false;
      if (!sound) while (this.#at < this.#end && bytes[this.#at]! > 0x20) this.#at++;
      if (this.#fields.hasEnough) return true;
    }
  }

  /** Reads the value behind the equals sign at `keyEnd`; false when it is broken, with the cursor where it breaks. */
  #readValue(key: number, keyEnd: number): boolean {
    const start = keyEnd + 1;
    if (start >= this.#end || this.#bytes[start] !== 0x22) {
      this.#at = this.#wordEnd(start);
      const stop = this.#at < this.#end ? this.#bytes[this.#at]! : 0;
      if (stop === 0x3d || stop === 0x22) return false;
      this.#note(key, keyEnd, false, start, this.#at);
      return true;
    }
    const close = quoteEnd(this.#bytes, start + 1, this.#end);
    this.#at = close < 0 ? this.#end : close + 1;
    if (close < 0) return false;
    const escaped = this.#bytes.subarray(start + 1, close).includes(0x5c);
    if (escaped && !this.#areEscapesSound(start + 1, close)) return false;
    this.#note(key, keyEnd, escaped, start + 1, close);
    return true;
  }

  #note(key: number, keyEnd: number, escaped: boolean, start: number, end: number): void {
    if (end === start && !this.#options.keepEmpty) return;
    const isCoded = escaped || isWide(this.#bytes, start, end);
    const kind = isCoded ? fieldKind.coded : fieldKind.plain;
    const name = labelNameOf(this.#bytes, key, keyEnd, []);
    for (const [field, wanted] of this.#fields.names.entries()) {
      if (!matchesName(wanted, name, false)) continue;
      if (this.#options.lastWins || !this.#fields.has(field))
        this.#fields.set(field, kind, start, end);
    }
  }

  /** True when every escape is known and, as there are escapes, no control character stands between them. */
  #areEscapesSound(start: number, end: number): boolean {
    const bytes = this.#bytes;
    for (let at = start; at < end; at++) {
      if (bytes[at]! < 0x20) return false;
      if (bytes[at] !== 0x5c) continue;
      at++;
      if (bytes[at] !== 0x75) {
        if (!knownEscapes.has(bytes[at]!)) return false;
        continue;
      }
      if (end - at <= 4) return false;
      for (const last = at + 4; at < last; at++) if (!isHex(bytes[at + 1]!)) return false;
    }
    return true;
  }

  /** End of a word: a blank, a control character, an equals sign or a quote. */
  #wordEnd(from: number): number {
    const bytes = this.#bytes;
    let at = from;
    while (at < this.#end && bytes[at]! > 0x20 && bytes[at] !== 0x3d && bytes[at] !== 0x22) at++;
    return at;
  }
}

const knownEscapes = new Set(new TextEncoder().encode("\"\\/'bfnrt"));

function isHex(byte: number): boolean {
  const lower = byte | 0x20;
  return (byte >= 0x30 && byte <= 0x39) || (lower >= 0x61 && lower <= 0x66);
}

const encoder = new TextEncoder();

/** The wanted names and, while a row is scanned, what was found of them. */
export class FieldNames {
  readonly names: readonly Uint8Array[];
  readonly #columns: FieldColumns;
  readonly #enough: number;
  /** One bit per name. */
  #found = 0;
  #row = 0;

  constructor(names: readonly string[], columns: FieldColumns, enough: number) {
    checkFieldNames(names);
    this.names = names.map((name) => encoder.encode(name));
    this.#columns = columns;
    this.#enough = enough;
  }

  startRow(row: number): void {
    this.#row = row;
    this.clear();
  }

  clear(): void {
    this.#found = 0;
    for (let f = 0; f < this.names.length; f++) {
      this.#columns.kind[f * this.#columns.capacity + this.#row] = fieldKind.absent;
    }
  }

  has(field: number): boolean {
    return (this.#found & (1 << field)) !== 0;
  }

  /** True when what was found is all that is asked for. */
  get hasEnough(): boolean {
    const enough = this.#enough | 0;
    return enough !== 0 && (this.#found & enough) === enough;
  }

  set(field: number, kind: number, start: number, end: number): void {
    this.#found |= 1 << field;
    const slot = field * this.#columns.capacity + this.#row;
    this.#columns.kind[slot] = kind;
    this.#columns.start[slot] = start;
    this.#columns.length[slot] = end - start;
  }
}

/**
 * The key as a label name spells it, from `prefix` on: what is not a letter, digit or underscore becomes an
 * underscore, and a digit does not begin a name. The key is ASCII and has no blanks at its ends.
 */
function labelNameOf(
  bytes: Uint8Array,
  start: number,
  end: number,
  prefix: readonly number[],
): number[] {
  const name = [...prefix];
  if (prefix.length === 0 && start < end && isDigit(bytes[start]!)) name.push(0x5f);
  for (let at = start; at < end; at++) name.push(isNameByte(bytes[at]!) ? bytes[at]! : 0x5f);
  return name;
}

/** True for a key whose label name the kernel does not work out: escapes, beyond ASCII, or blanks at its ends. */
function isOddKey(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (bytes[at] === 0x5c || bytes[at]! >= 0x80) return true;
  return end > start && (bytes[start]! <= 0x20 || bytes[end - 1]! <= 0x20);
}

/** True when the name is this text, or with `within` when it begins with the text and an underscore. */
function matchesName(name: Uint8Array, text: readonly number[], within: boolean): boolean {
  if (within ? name.length <= text.length : name.length !== text.length) return false;
  for (let i = 0; i < text.length; i++) if (name[i] !== text[i]) return false;
  return !within || name[text.length] === 0x5f;
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

function isNameByte(byte: number): boolean {
  const lower = byte | 0x20;
  return isDigit(byte) || (lower >= 0x61 && lower <= 0x7a) || byte === 0x5f;
}

/** True when a byte of the range is beyond ASCII. */
export function isWide(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (bytes[at]! >= 0x80) return true;
  return false;
}

/** Position of the quote that closes the text from `from` on, -1 without one; an escaped quote closes nothing. */
export function quoteEnd(bytes: Uint8Array, from: number, end: number): number {
  for (let at = from; at < end; at++) {
    const byte = bytes[at]!;
    if (byte === 0x22) return at;
    if (byte === 0x5c) at++;
  }
  return -1;
}
