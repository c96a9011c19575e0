import type { LevelOptions } from "../levels/names.js";
import type { KernelMemory } from "./memory.js";

/** The compiled form of twin/levels.ts: only the part of the bytes that the rows lie in is copied. */
export function detectLevels(
  memory: KernelMemory,
  bytes: Uint8Array,
  lineStart: Uint32Array,
  lineLength: Uint32Array,
  rows: number,
  out: Uint8Array,
  options: LevelOptions,
): void {
  if (rows === 0) return;
  let low = bytes.length;
  let high = 0;
  for (let row = 0; row < rows; row++) {
    const start = lineStart[row]!;
    if (start < low) low = start;
    if (start + lineLength[row]! > high) high = start + lineLength[row]!;
  }
  high = Math.min(high, bytes.length);
  low = Math.min(low, high);
  const kernels = memory.open();
  try {
    const text = memory.copyIn(bytes.subarray(low, high));
    const fields = memory.copyIn(fieldTable(options.fields));
    const starts = memory.copyInWords(lineStart, rows);
    const lengths = memory.copyInWords(lineLength, rows);
    const levels = memory.take(rows);
    const depth = Math.max(0, Math.min(options.jsonMaxDepth, 0x7fffffff));
    kernels.detectLevels(text - low, high, starts, lengths, rows, levels, fields, depth);
    out.set(memory.bytes(levels, rows));
  } finally {
    memory.close();
  }
}

const encoder = new TextEncoder();
const entryBytes = 16;

/** Tables by list of names: a tenant keeps its list from push to push. */
const tables = new WeakMap<readonly string[], Uint8Array>();

function fieldTable(fields: readonly string[]): Uint8Array {
  const known = tables.get(fields);
  if (known !== undefined) return known;
  const table = makeFieldTable(fields);
  tables.set(fields, table);
  return table;
}

/** A count, then per name where it starts, its length, and the same of its folded form; then the names; u32 each. */
function makeFieldTable(fields: readonly string[]): Uint8Array {
  const names = fields.flatMap((name) => [name, name.toLowerCase()].map((n) => encoder.encode(n)));
  let at = 4 + fields.length * entryBytes;
  const table = new Uint8Array(names.reduce((sum, name) => sum + name.length, at));
  const view = new DataView(table.buffer);
  view.setUint32(0, fields.length, true);
  for (const [i, name] of names.entries()) {
    view.setUint32(4 + i * 8, at, true);
    view.setUint32(8 + i * 8, name.length, true);
    table.set(name, at);
    at += name.length;
  }
  return table;
}
