import type { Arena } from "./bytes.js";

/**
 * Finds bytes that are no UTF-8, and the sign U+FFFD that stands for such: parsers put a blank in place of each.
 * Returns the start of the repaired copy in the arena, or -1 when the range is fine as it is.
 */
export function blankBrokenUtf8(arena: Arena, bytes: Uint8Array, from: number, to: number): number {
  let i = from;
  while (i < to) {
    const length = goodLength(bytes, i, to);
    if (length === 0) break;
    i += length;
  }
  if (i === to) return -1;
  arena.reserve(to - from);
  const out = arena.bytes;
  const start = arena.used;
  let at = start;
  for (let k = from; k < to; ) {
    const length = goodLength(bytes, k, to);
    if (length === 0) {
      out[at++] = 32;
      k += isReplacement(bytes, k, to) ? 3 : 1;
      continue;
    }
    for (let n = 0; n < length; n++) out[at++] = bytes[k++]!;
  }
  arena.used = at;
  return start;
}

function isReplacement(bytes: Uint8Array, at: number, end: number): boolean {
  return at + 2 < end && bytes[at] === 0xef && bytes[at + 1] === 0xbf && bytes[at + 2] === 0xbd;
}

/** Length of the character at `at`; 0 when it is broken or U+FFFD. */
function goodLength(bytes: Uint8Array, at: number, end: number): number {
  const c = bytes[at]!;
  if (c < 0x80) return 1;
  const length =
    c >= 0xc2 && c <= 0xdf ? 2 : c >= 0xe0 && c <= 0xef ? 3 : c >= 0xf0 && c <= 0xf4 ? 4 : 0;
  if (length === 0 || at + length > end) return 0;
  const second = bytes[at + 1]!;
  const low = c === 0xe0 ? 0xa0 : c === 0xf0 ? 0x90 : 0x80;
  const high = c === 0xed ? 0x9f : c === 0xf4 ? 0x8f : 0xbf;
  if (second < low || second > high) return 0;
  for (let i = 2; i < length; i++) if ((bytes[at + i]! & 0xc0) !== 0x80) return 0;
  return isReplacement(bytes, at, end) ? 0 : length;
}
