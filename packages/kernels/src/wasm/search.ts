import type { Kernels } from "../shared/kernels.js";
import { type RowSelection, rarestPair } from "../shared/search.js";
import type { KernelMemory } from "./memory.js";

/** The compiled form of twin/search.ts: only the part of the bytes that the selected rows lie in is copied. */
export const selectContains =
  (memory: KernelMemory): Kernels["selectContains"] =>
  (bytes, offsets, rows, needle, selection, options) => {
    const selected = selection.rows;
    const count = countWithin(selection, rows);
    selection.count = count;
    if (count === 0) return;
    const high = Math.min(offsets[selected[count - 1]! + 1]!, bytes.length);
    const low = Math.min(offsets[selected[0]!]!, high);
    if (needle.length === 0 || needle.length > high - low) {
      if ((needle.length === 0) === options.negate) selection.count = 0;
      return;
    }
    const kernels = memory.open();
    try {
      const { text: wanted, folds } = options.ignoreCase
        ? fold(needle)
        : { text: needle, folds: needle };
      const [first, second] = rarestPair(wanted);
      const text = memory.copyIn(bytes.subarray(low, high));
      const ends = memory.copyInWords(offsets, rows + 1);
      const needleAt = memory.copyIn(wanted);
      const foldsAt = memory.copyIn(folds);
      const scratch = memory.take(needle.length * 4);
      const rowsAt = memory.copyInWords(selected, count);
      const kept = kernels.selectContains(
        text - low,
        low,
        high,
        ends,
        rows,
        needleAt,
        needle.length,
        foldsAt,
        first,
        second,
        scratch,
        rowsAt,
        count,
        options.ignoreCase ? 1 : 0,
        options.negate ? 1 : 0,
      );
      selected.set(memory.words(rowsAt, kept));
      selection.count = kept;
    } finally {
      memory.close();
    }
  };

/** The compiled form of twin/search.ts; the tables of the texts are copied in with the rows. */
export const selectContainsAny =
  (memory: KernelMemory): Kernels["selectContainsAny"] =>
  (bytes, offsets, rows, texts, selection, negate) => {
    const selected = selection.rows;
    const count = countWithin(selection, rows);
    selection.count = texts.isEverywhere && negate ? 0 : count;
    if (count === 0 || texts.isEverywhere) return;
    const high = Math.min(offsets[selected[count - 1]! + 1]!, bytes.length);
    const low = Math.min(offsets[selected[0]!]!, high);
    const kernels = memory.open();
    try {
      const text = memory.copyIn(bytes.subarray(low, high));
      const ends = memory.copyInWords(offsets, rows + 1);
      const textsAt = memory.copyIn(texts.packed);
      const rowsAt = memory.copyInWords(selected, count);
      const kept = kernels.selectContainsAny(
        text - low,
        low,
        high,
        ends,
        textsAt,
        rowsAt,
        count,
        negate ? 1 : 0,
      );
      selected.set(memory.words(rowsAt, kept));
      selection.count = kept;
    } finally {
      memory.close();
    }
  };

/** How many of the selected rows exist in the block. */
function countWithin(selection: RowSelection, rows: number): number {
  let count = Math.min(selection.count, selection.rows.length);
  while (count > 0 && selection.rows[count - 1]! >= rows) count--;
  return count;
}

/** The needle in lower case, and for each of its bytes what makes an upper-case letter of the text equal to it. */
function fold(needle: Uint8Array): { text: Uint8Array; folds: Uint8Array } {
  const text = new Uint8Array(needle.length);
  const folds = new Uint8Array(needle.length);
  for (let i = 0; i < needle.length; i++) {
    const lower = needle[i]! | 0x20;
    const letter = lower >= 0x61 && lower <= 0x7a;
    text[i] = letter ? lower : needle[i]!;
    folds[i] = letter ? 0x20 : 0;
  }
  return { text, folds };
}
