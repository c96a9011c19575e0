import type { RowMask } from "@skald/contracts";
import { lowerBound } from "@skald/model";

export const emptyMask: RowMask = { blocks: new Uint32Array(0), rows: [] };

/** The rows that any of the parts names. */
export function uniteMasks(parts: readonly RowMask[]): RowMask {
  const filled = parts.filter((part) => part.blocks.length > 0);
  if (filled.length <= 1) return filled[0] ?? emptyMask;
  const byBlock = new Map<number, Uint32Array[]>();
  for (const part of filled) {
    part.blocks.forEach((block, i) => {
      const lists = byBlock.get(block) ?? [];
      lists.push(part.rows[i] as Uint32Array);
      byBlock.set(block, lists);
    });
  }
  const blocks = Uint32Array.from(byBlock.keys()).sort();
  return { blocks, rows: [...blocks].map((block) => mergeRows(byBlock.get(block) ?? [])) };
}

/** The same in shared memory, which crosses to a thread without a copy. */
export function shareMask({ blocks, rows }: RowMask): RowMask {
  if (blocks.length === 0) return emptyMask;
  const count = rows.reduce((sum, list) => sum + list.length, 0);
  const shared = new Uint32Array(new SharedArrayBuffer(count * 4));
  let at = 0;
  const lists = rows.map((list) => {
    shared.set(list, at);
    at += list.length;
    return shared.subarray(at - list.length, at);
  });
  return { blocks, rows: lists };
}

/** How many of the ascending numbers lie in [from, to). */
export function countWithin(sorted: Uint32Array, from: number, to: number): number {
  return lowerBound(sorted, to) - lowerBound(sorted, from);
}

/** How many rows a mask names. */
export function maskRows({ rows }: RowMask): number {
  return rows.reduce((sum, list) => sum + list.length, 0);
}

/** Bytes of memory that a mask takes. */
export function maskBytes({ rows }: RowMask): number {
  return rows.reduce((sum, list) => sum + list.byteLength + 100, 100);
}

/** Ascending, each number once. */
function mergeRows(lists: readonly Uint32Array[]): Uint32Array {
  if (lists.length === 1) return lists[0] as Uint32Array;
  const all = new Uint32Array(lists.reduce((sum, list) => sum + list.length, 0));
  let at = 0;
  for (const list of lists) {
    all.set(list, at);
    at += list.length;
  }
  return all.sort().filter((row, i) => row !== all[i - 1]);
}
