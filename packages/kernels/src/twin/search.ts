import type { Kernels } from "../shared/kernels.js";
import type { RowSelection } from "../shared/search.js";
import { childOf, matchState, type TextSet } from "../shared/text-set.js";

/**
 * Narrows the selection to the rows whose text contains the needle (or with `negate` does not). Row i is
 * `bytes[offsets[i] .. offsets[i+1])`; `rows` is the number of rows of the block. An empty needle is in every row.
 */
export const selectContains: Kernels["selectContains"] = (
  bytes,
  offsets,
  rows,
  needle,
  selection,
  options,
) => {
  const selected = selection.rows;
  const count = Math.min(selection.count, selected.length);
  const wanted = options.ignoreCase ? foldCase(needle, 0, needle.length) : needle;
  const haystack =
    options.ignoreCase && count > 0 ? foldSelected(bytes, offsets, selection) : bytes;
  const find = finderOf(haystack);
  let kept = 0;
  let hit = -1;
  for (let i = 0; i < count; i++) {
    const row = selected[i]!;
    if (row >= rows) continue;
    const end = Math.min(offsets[row + 1]!, haystack.length);
    const start = Math.min(offsets[row]!, end);
    if (hit < start && needle.length > 0) hit = find(wanted, start);
    // A hit that begins in the row may reach over its end; the next one is looked for at the next row then.
    const found = needle.length === 0 || hit + wanted.length <= end;
    if (found !== options.negate) selected[kept++] = row;
  }
  selection.count = kept;
};

/** A position behind any text. */
const nowhere = Number.MAX_SAFE_INTEGER;

/** Finds needles in the bytes, by Node's Buffer or, in a browser, by hand. */
function finderOf(bytes: Uint8Array): (needle: Uint8Array, from: number) => number {
  if (typeof Buffer === "undefined") return (needle, from) => findPlain(bytes, needle, from);
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return (needle, from) => {
    const hit = text.indexOf(needle, from);
    return hit < 0 ? nowhere : hit;
  };
}

/** The same as Buffer.indexOf for a needle that is not empty; `nowhere` when it is not found. */
export function findPlain(bytes: Uint8Array, needle: Uint8Array, from: number): number {
  const last = bytes.length - needle.length;
  let hit = bytes.indexOf(needle[0]!, from);
  for (; hit >= 0 && hit <= last; hit = bytes.indexOf(needle[0]!, hit + 1)) {
    let i = 1;
    while (i < needle.length && bytes[hit + i] === needle[i]) i++;
    if (i === needle.length) return hit;
  }
  return nowhere;
}

/** A copy of the bytes in which those of the selected rows are folded. */
function foldSelected(
  bytes: Uint8Array,
  offsets: Uint32Array,
  selection: RowSelection,
): Uint8Array {
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

/**
 * Narrows the selection to the rows that contain one of the texts (or with `negate` none), in one pass whatever their
 * number. Row i is `bytes[offsets[i] .. offsets[i+1])`; `rows` is the number of rows of the block.
 */
export const selectContainsAny: Kernels["selectContainsAny"] = (
  bytes,
  offsets,
  rows,
  texts,
  selection,
  negate,
) => {
  const selected = selection.rows;
  const count = Math.min(selection.count, selected.length);
  let kept = 0;
  for (let i = 0; i < count; i++) {
    const row = selected[i]!;
    if (row >= rows) continue;
    const end = Math.min(offsets[row + 1]!, bytes.length);
    if (containsAny(texts, bytes, offsets[row]!, end) !== negate) selected[kept++] = row;
  }
  selection.count = kept;
};

/** True when one of the texts stands in `bytes[start .. end)`; for single rows, where a call of a kernel costs more. */
export function containsAny(
  texts: TextSet,
  bytes: Uint8Array,
  start: number,
  end: number,
): boolean {
  if (texts.isEverywhere) return true;
  const { fail, ignoreCase } = texts;
  let state = 0;
  for (let at = start; at < end; at++) {
    let byte = bytes[at]!;
    if (ignoreCase && byte >= 0x41 && byte <= 0x5a) byte |= 0x20;
    let next = childOf(texts, state, byte);
    while (next === 0 && state !== 0) {
      state = fail[state]!;
      next = childOf(texts, state, byte);
    }
    state = next;
    if (fail[state] === matchState) return true;
  }
  return false;
}
