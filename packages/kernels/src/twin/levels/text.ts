import { levelCode, levelSpellings } from "../../levels/names.js";

/** Code of the bytes as a level value in any case, 0 when they are none. */
export function levelOfBytes(bytes: Uint8Array, start: number, end: number): number {
  const length = end - start;
  if (length < 3 || length > 11) return levelCode.none;
  for (const [word, code] of spellings) {
    if (word.length === length && matchesFolded(bytes, start, word)) return code;
  }
  return levelCode.none;
}

/** True when the bytes at `start` are this word of lower-case letters, in any case. */
export function matchesFolded(bytes: Uint8Array, start: number, word: Uint8Array): boolean {
  for (let i = 0; i < word.length; i++) {
    if ((bytes[start + i]! | 0x20) !== word[i]) return false;
  }
  return true;
}

const encoder = new TextEncoder();
const spellings = [...levelSpellings].map(([text, code]) => [encoder.encode(text), code] as const);
