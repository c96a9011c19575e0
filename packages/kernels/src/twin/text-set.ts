import type { RowSelection } from "../search/selection.js";
import { childOf, matchState, type TextSet } from "../search/text-set.js";

/**
 * Narrows the selection to the rows that contain one of the texts (or with `negate` none), in one pass whatever their
 * number. Row i is `bytes[offsets[i] .. offsets[i+1])`; `rows` is the number of rows of the block.
 */
export function selectContainsAny(
  bytes: Uint8Array,
  offsets: Uint32Array,
  rows: number,
  texts: TextSet,
  selection: RowSelection,
  negate: boolean,
): void {
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
}

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
