import { fieldKind } from "../shared/fields.js";
import type { Kernels } from "../shared/kernels.js";
import {
  blockEnd,
  FieldNames,
  isWide,
  jsonWordEnd,
  kindOfWord,
  quoteEnd,
  skipBlanks,
} from "./fields.js";

/**
 * Finds the values of these keys in lines that are JSON objects, not in objects within: of equal keys the first, null as
 * an empty text, objects and arrays as they stand. A line counts as read when it is sound up to where all keys are
 * found, or to its end. Lines that do not begin with a brace, and those with escapes in a key, are not read.
 */
export const scanJsonKeys: Kernels["scanJsonKeys"] = (
  bytes,
  offsets,
  selection,
  keys,
  out,
  { enough },
) => {
  const fields = new FieldNames(keys, out, enough);
  for (let i = 0; i < selection.count; i++) {
    const row = selection.rows[i]!;
    const end = Math.min(offsets[row + 1]!, bytes.length);
    fields.startRow(i);
    const isRead = readMembers(bytes, Math.min(offsets[row]!, end), end, fields);
    if (!isRead) fields.clear();
    out.isRead[i] = isRead ? 1 : 0;
  }
};

function readMembers(bytes: Uint8Array, start: number, end: number, fields: FieldNames): boolean {
  if (start >= end || bytes[start] !== 0x7b) return false;
  let at = skipBlanks(bytes, start + 1, end);
  while (at < end) {
    if (bytes[at] === 0x7d) return true;
    if (bytes[at] !== 0x22) return false;
    const key = at + 1;
    const keyEnd = quoteEnd(bytes, key, end);
    if (keyEnd < 0 || bytes.subarray(key, keyEnd).includes(0x5c)) return false;
    at = skipBlanks(bytes, keyEnd + 1, end);
    if (at >= end || bytes[at] !== 0x3a) return false;
    at = skipBlanks(bytes, at + 1, end);
    const value = at < end ? valueAt(bytes, at, end) : undefined;
    if (value === undefined) return false;
    for (const [field, name] of fields.names.entries()) {
      if (fields.has(field) || !isSame(name, bytes.subarray(key, keyEnd))) continue;
      fields.set(field, value.kind, value.start, value.end);
    }
    if (fields.hasEnough) return true;
    at = skipBlanks(bytes, value.next, end);
    if (at >= end || (bytes[at] !== 0x7d && bytes[at] !== 0x2c)) return false;
    if (bytes[at] === 0x2c) at = skipBlanks(bytes, at + 1, end);
  }
  return false;
}

interface Value {
  readonly kind: number;
  readonly start: number;
  readonly end: number;
  /** Where reading goes on. */
  readonly next: number;
}

/** Undefined where no value is, or one that does not end. */
function valueAt(bytes: Uint8Array, at: number, end: number): Value | undefined {
  const { plain, coded, absent } = fieldKind;
  const byte = bytes[at]!;
  if (byte === 0x22) {
    const close = quoteEnd(bytes, at + 1, end);
    if (close < 0) return undefined;
    const escaped = bytes.subarray(at + 1, close).includes(0x5c);
    const kind = escaped || isWide(bytes, at + 1, close) ? coded : plain;
    return { kind, start: at + 1, end: close, next: close + 1 };
  }
  if (byte === 0x7b || byte === 0x5b) {
    const close = blockEnd(bytes, at, end);
    return close < 0 ? undefined : { kind: plain, start: at, end: close, next: close };
  }
  const close = jsonWordEnd(bytes, at, end);
  const kind = kindOfWord(bytes, at, close);
  if (kind < 0) return undefined;
  return { kind: plain, start: at, end: kind === absent ? at : close, next: close };
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, i) => byte === other[i]);
}
