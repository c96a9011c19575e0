import type { Kernels } from "../shared/kernels.js";
import { levelCode, levelKeywords, levelSpellings } from "../shared/levels.js";
import { quoteEnd } from "./fields.js";

/**
 * Writes the level code of each row into `out`, from the text of its line alone: a level field of a JSON object or
 * of logfmt pairs, else the first level word that stands by itself, else unknown.
 */
export const detectLevels: Kernels["detectLevels"] = (
  bytes,
  lineStart,
  lineLength,
  rows,
  out,
  options,
) => {
  const names = options.fields.map((field) => encoder.encode(field));
  const folded = options.fields.map((field) => encoder.encode(field.toLowerCase()));
  for (let row = 0; row < rows; row++) {
    const start = lineStart[row]!;
    const end = Math.min(start + lineLength[row]!, bytes.length);
    out[row] = levelOfLine(bytes, start, end, { names, folded, maxDepth: options.jsonMaxDepth });
  }
};

const encoder = new TextEncoder();

interface LevelFields {
  readonly names: readonly Uint8Array[];
  readonly folded: readonly Uint8Array[];
  readonly maxDepth: number;
}

function levelOfLine(bytes: Uint8Array, start: number, end: number, fields: LevelFields): number {
  let from = start;
  let to = end;
  while (from < to && isBlank(bytes[from]!)) from++;
  while (to > from && isBlank(bytes[to - 1]!)) to--;
  let level = 0;
  if (to - from > 1 && bytes[from] === 0x7b && bytes[to - 1] === 0x7d) {
    level = findJsonLevel(bytes, from, to, fields.names, fields.maxDepth);
  } else {
    level = findLogfmtLevel(bytes, from, to, fields.folded);
  }
  return level !== levelCode.none ? level : findKeyword(bytes, start, end);
}

/** The blanks that are cut off both ends of a line: space, tab, newline, vertical tab, form feed, return. */
function isBlank(byte: number): boolean {
  return byte === 0x20 || (byte >= 9 && byte <= 13);
}

const keywords = levelKeywords.map(
  (text) => [encoder.encode(text), levelSpellings.get(text) ?? 0] as const,
);

const leftOfWord = new Set(encoder.encode(" \t\n[({\"'=|"));
const rightOfWord = new Set(encoder.encode(" \t\n[](){}:,!\"'=|"));

/** Code of the first word of the list that stands by itself within the range, else unknown. */
function findKeyword(bytes: Uint8Array, start: number, end: number): number {
  for (let at = start; at < end; at++) {
    if (at > start && !leftOfWord.has(bytes[at - 1]!)) continue;
    for (const [word, code] of keywords) {
      const after = at + word.length;
      if (after > end || !matchesFolded(bytes, at, word)) continue;
      if (after === end || rightOfWord.has(bytes[after]!)) return code;
    }
  }
  return levelCode.unknown;
}

/**
 * Code of the first string field with one of the names, in document order, in the object and the objects within
 * it down to `maxDepth` (not within arrays); 0 when there is none, when its value is no level, or when the text
 * breaks off before. Values are compared as they are written, with their escapes.
 */
function findJsonLevel(
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

/**
 * Code of the logfmt pair whose key has the best rank among the names (lower case; keys match in any case); of
 * equal ranks the first. 0 when no key matches or when its value is no level. Broken pairs are passed over.
 */
function findLogfmtLevel(
  bytes: Uint8Array,
  start: number,
  end: number,
  names: readonly Uint8Array[],
): number {
  let best = names.length;
  let level = 0;
  let at = start;
  while (at < end && best > 0) {
    while (at < end && bytes[at]! <= 0x20) at++;
    const key = at;
    while (at < end && bytes[at]! > 0x20 && bytes[at] !== 0x3d && bytes[at] !== 0x22) at++;
    if (at >= end) break;
    if (bytes[at] !== 0x3d) {
      if (bytes[at] === 0x22) at = wordEnd(bytes, at, end);
      continue;
    }
    const keyEnd = at++;
    let value = at;
    let valueEnd: number;
    if (at < end && bytes[at] === 0x22) {
      value = at + 1;
      valueEnd = quoteEnd(bytes, value, end);
      if (valueEnd < 0) break;
      at = valueEnd + 1;
    } else {
      valueEnd = wordEnd(bytes, at, end);
      at = valueEnd;
    }
    const rank = keyEnd === key ? best : rankOf(bytes, key, keyEnd, names, best);
    if (rank >= best) continue;
    best = rank;
    level = levelOfBytes(bytes, value, valueEnd);
  }
  return level;
}

function wordEnd(bytes: Uint8Array, from: number, end: number): number {
  let at = from;
  while (at < end && bytes[at]! > 0x20) at++;
  return at;
}

/** Rank of the key among the names, or `below` when none of a better rank matches. */
function rankOf(
  bytes: Uint8Array,
  start: number,
  end: number,
  names: readonly Uint8Array[],
  below: number,
): number {
  next: for (let rank = 0; rank < below; rank++) {
    const name = names[rank]!;
    if (name.length !== end - start) continue;
    for (let i = 0; i < name.length; i++) {
      const byte = bytes[start + i]!;
      const folded = byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte;
      if (folded !== name[i]) continue next;
    }
    return rank;
  }
  return below;
}

/** Code of the bytes as a level value in any case, 0 when they are none. */
function levelOfBytes(bytes: Uint8Array, start: number, end: number): number {
  const length = end - start;
  if (length < 3 || length > 11) return levelCode.none;
  for (const [word, code] of spellings) {
    if (word.length === length && matchesFolded(bytes, start, word)) return code;
  }
  return levelCode.none;
}

/** True when the bytes at `start` are this word of lower-case letters, in any case. */
function matchesFolded(bytes: Uint8Array, start: number, word: Uint8Array): boolean {
  for (let i = 0; i < word.length; i++) {
    if ((bytes[start + i]! | 0x20) !== word[i]) return false;
  }
  return true;
}

const spellings = [...levelSpellings].map(([text, code]) => [encoder.encode(text), code] as const);
