import { fieldKind } from "../shared/fields.js";
import type { Kernels } from "../shared/kernels.js";

const encoder = new TextEncoder();

/**
 * Finds what a pattern captures. A row that does not begin with the first text has no captures. Each capture reaches to
 * the first place of the text behind it; where that does not come, it takes the rest, and those behind it are absent.
 */
export const scanPattern: Kernels["scanPattern"] = (bytes, offsets, selection, pattern, out) => {
  const [prefix, ...ends] = pattern.texts.map((text) => encoder.encode(text)) as [
    Uint8Array,
    ...Uint8Array[],
  ];
  const { columns, columnCount } = pattern;
  for (let i = 0; i < selection.count; i++) {
    const row = selection.rows[i]!;
    const end = Math.min(offsets[row + 1]!, bytes.length);
    const start = Math.min(offsets[row]!, end);
    out.isRead[i] = 1;
    for (let column = 0; column < columnCount; column++) {
      out.kind[column * out.capacity + i] = fieldKind.absent;
    }
    let at = start + prefix.length;
    if (start === end || at > end || find(bytes, start, at, prefix) < 0) continue;
    for (const [capture, text] of ends.entries()) {
      const found = text.length === 0 ? -1 : find(bytes, at, end, text);
      const column = columns[capture]!;
      if (column >= 0) {
        const slot = column * out.capacity + i;
        out.kind[slot] = fieldKind.plain;
        out.start[slot] = at;
        out.length[slot] = (found < 0 ? end : found) - at;
      }
      if (found < 0) break;
      at = found + text.length;
    }
  }
};

/** Where the text begins in a range, or -1. */
function find(bytes: Uint8Array, from: number, to: number, text: Uint8Array): number {
  for (let at = from; at + text.length <= to; at++) {
    let same = 0;
    while (same < text.length && bytes[at + same] === text[same]) same++;
    if (same === text.length) return at;
  }
  return -1;
}
