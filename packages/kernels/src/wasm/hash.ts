import type { KernelMemory } from "./memory.js";

/** The compiled form of twin/hash.ts. */
export function hashRows(
  memory: KernelMemory,
  bytes: Uint8Array,
  offsets: Uint32Array,
  rows: number,
  high: Uint32Array,
  low: Uint32Array,
): void {
  const kernels = memory.open();
  try {
    const text = memory.copyIn(bytes);
    const starts = memory.copyInWords(offsets, rows + 1);
    const highAt = memory.take(rows * 4);
    const lowAt = memory.take(rows * 4);
    kernels.hashRows(text, bytes.length, starts, rows, highAt, lowAt);
    high.set(memory.words(highAt, rows));
    low.set(memory.words(lowAt, rows));
  } finally {
    memory.close();
  }
}
