import { type LevelOptions, levelCode, levelKeywords, levelSpellings } from "../../levels/names.js";
import { findJsonLevel } from "./json.js";
import { findLogfmtLevel } from "./logfmt.js";
import { matchesFolded } from "./text.js";

/**
 * Writes the level code of each row into `out`, from the text of its line alone: a level field of a JSON object or
 * of logfmt pairs, else the first level word that stands by itself, else unknown.
 */
export function detectLevels(
  bytes: Uint8Array,
  lineStart: Uint32Array,
  lineLength: Uint32Array,
  rows: number,
  out: Uint8Array,
  options: LevelOptions,
): void {
  const names = options.fields.map((field) => encoder.encode(field));
  const folded = options.fields.map((field) => encoder.encode(field.toLowerCase()));
  for (let row = 0; row < rows; row++) {
    const start = lineStart[row]!;
    const end = Math.min(start + lineLength[row]!, bytes.length);
    out[row] = levelOfLine(bytes, start, end, { names, folded, maxDepth: options.jsonMaxDepth });
  }
}

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
