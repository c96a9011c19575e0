import { type BytesColumn, paddingBytes } from "@skald/model";
import type { FoundLines } from "../plan/plan.js";

/** All values of one column, in its order. */
export function linesOf(column: BytesColumn): FoundLines {
  const value = Uint32Array.from({ length: column.offsets.length - 1 }, (_, i) => i);
  return { columns: [column], column: new Uint32Array(value.length), value };
}

/** The bytes of a line, in the memory of its column. */
export function lineAt({ columns, column, value }: FoundLines, row: number): Uint8Array {
  const { bytes, offsets } = columns[column[row]!]!;
  return bytes.subarray(offsets[value[row]!], offsets[value[row]! + 1]);
}

/** Bytes that the lines keep in memory. */
export function lineMemory({ columns }: FoundLines): number {
  return columns.reduce((sum, { bytes }) => sum + bytes.byteLength, 0);
}

/** The lines as one column: a copy, unless they are that already. */
export function joinLines(lines: FoundLines): BytesColumn {
  const { columns, value } = lines;
  const [only] = columns;
  const isWhole = columns.length === 1 && only?.offsets.length === value.length + 1;
  if (isWhole && value.every((at, i) => at === i)) return only;
  const offsets = new Uint32Array(value.length + 1);
  for (let i = 0; i < value.length; i++) offsets[i + 1] = offsets[i]! + lineAt(lines, i).length;
  const bytes = new Uint8Array(offsets[value.length]! + paddingBytes);
  for (let i = 0; i < value.length; i++) bytes.set(lineAt(lines, i), offsets[i]);
  return { bytes, offsets };
}
