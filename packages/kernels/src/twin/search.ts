import type { ContainsOptions, Selection } from "../selection.js";

/**
 * Narrows the selection to the rows whose text contains the needle (or with `negate` does not). Row i is
 * `bytes[offsets[i] .. offsets[i+1])`; `rows` is the number of rows of the block. An empty needle is in every row.
 */
export function selectContains(
  bytes: Uint8Array,
  offsets: Uint32Array,
  rows: number,
  needle: Uint8Array,
  selection: Selection,
  options: ContainsOptions,
): void {
  const selected = selection.rows;
  const count = Math.min(selection.count, selected.length);
  const wanted = options.ignoreCase ? foldCase(needle, 0, needle.length) : needle;
  const haystack =
    options.ignoreCase && count > 0 ? foldSelected(bytes, offsets, selection) : bytes;
  const text = Buffer.from(haystack.buffer, haystack.byteOffset, haystack.byteLength);
  let kept = 0;
  let hit = -1;
  for (let i = 0; i < count; i++) {
    const row = selected[i]!;
    if (row >= rows) continue;
    const end = Math.min(offsets[row + 1]!, text.length);
    const start = Math.min(offsets[row]!, end);
    if (hit < start && needle.length > 0) hit = nextHit(text, wanted, start);
    // A hit that begins in the row may reach over its end; the next one is looked for at the next row then.
    const found = needle.length === 0 || hit + wanted.length <= end;
    if (found !== options.negate) selected[kept++] = row;
  }
  selection.count = kept;
}

/** Position of the needle at or after `from`, -1 when there is none; an empty needle is found at once. */
export function indexOfBytes(bytes: Uint8Array, needle: Uint8Array, from = 0): number {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).indexOf(needle, from);
}

/** Positions behind any text. */
const nowhere = Number.MAX_SAFE_INTEGER;

function nextHit(text: Buffer, needle: Uint8Array, from: number): number {
  const hit = text.indexOf(needle, from);
  return hit < 0 ? nowhere : hit;
}

/** A copy of the bytes in which those of the selected rows are folded. */
function foldSelected(bytes: Uint8Array, offsets: Uint32Array, selection: Selection): Uint8Array {
  const end = offsets[selection.rows[selection.count - 1]! + 1] ?? bytes.length;
  return foldCase(bytes, offsets[selection.rows[0]!] ?? 0, Math.min(end, bytes.length));
}

function foldCase(bytes: Uint8Array, start: number, end: number): Uint8Array {
  const folded = new Uint8Array(bytes.length);
  for (let i = start; i < end; i++) {
    const byte = bytes[i]!;
    folded[i] = byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte;
  }
  return folded;
}
