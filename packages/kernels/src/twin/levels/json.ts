import { quoteEnd } from "../quoted.js";
import { levelOfBytes } from "./text.js";

/**
 * Code of the first string field with one of the names, in document order, in the object and the objects within
 * it down to `maxDepth` (not within arrays); 0 when there is none, when its value is no level, or when the text
 * breaks off before. Values are compared as they are written, with their escapes.
 */
export function findJsonLevel(
  bytes: Uint8Array,
  start: number,
  end: number,
  names: readonly Uint8Array[],
  maxDepth: number,
): number {
  let at = start;
  let objects = 0;
  let skipped = 0;
  while (at < end) {
    const byte = bytes[at]!;
    if (byte === 0x22) {
      const close = quoteEnd(bytes, at + 1, end);
      if (close < 0) return 0;
      const key = at + 1;
      at = close + 1;
      if (skipped > 0) continue;
      at = skipBlanks(bytes, at, end);
      if (bytes[at] !== 0x3a || at >= end) continue;
      at = skipBlanks(bytes, at + 1, end);
      if (at >= end || bytes[at] !== 0x22 || !isOneOf(bytes, key, close, names)) continue;
      const valueEnd = quoteEnd(bytes, at + 1, end);
      return valueEnd < 0 ? 0 : levelOfBytes(bytes, at + 1, valueEnd);
    }
    if (skipped > 0) {
      if (byte === 0x7b || byte === 0x5b) skipped++;
      else if (byte === 0x7d || byte === 0x5d) skipped--;
    } else if (byte === 0x5b) {
      skipped = 1;
    } else if (byte === 0x7b) {
      if (maxDepth > 0 && objects >= maxDepth) skipped = 1;
      else objects++;
    } else if (byte === 0x7d) {
      if (--objects === 0) return 0;
    }
    at++;
  }
  return 0;
}

function skipBlanks(bytes: Uint8Array, from: number, end: number): number {
  let at = from;
  while (at < end && (bytes[at] === 0x20 || (bytes[at]! >= 9 && bytes[at]! <= 13))) at++;
  return at;
}

function isOneOf(
  bytes: Uint8Array,
  start: number,
  end: number,
  names: readonly Uint8Array[],
): boolean {
  next: for (const name of names) {
    if (name.length !== end - start) continue;
    for (let i = 0; i < name.length; i++) if (bytes[start + i] !== name[i]) continue next;
    return true;
  }
  return false;
}
