import type { BitmapChoice, MarkedKeys } from "../needle/bitmap.js";
import type { KernelMemory } from "./memory.js";

/** Bytes that assembly/needle/windows.ts works in, beside one a slot. */
const scratchBytes = 180 * 1024;

/** The compiled form of twin/needle-bits.ts. */
export function markNeedleKeys(
  memory: KernelMemory,
  bytes: Uint8Array,
  offsets: Uint32Array,
  rows: number,
  { slots, plainKeys, threshold }: BitmapChoice,
): MarkedKeys & { readonly hasSigns: boolean } {
  const kernels = memory.open();
  try {
    const low = offsets[0]!;
    const text = memory.copyIn(bytes.subarray(low, offsets[rows])) - low;
    const starts = memory.copyInWords(offsets, rows + 1);
    const scratch = memory.take(scratchBytes + slots);
    const bits = memory.take(slots / 8);
    const extra = plainKeys === 3 ? 1 : 0;
    const places = [scratch, bits] as const;
    const found = kernels.markNeedleKeys(text, starts, rows, slots, extra, threshold, ...places);
    const hasSigns = (found & 1) === 1;
    return { bits: memory.bytes(bits, slots / 8).slice(), count: found >>> 1, hasSigns };
  } finally {
    memory.close();
  }
}

/** The compiled form of twin/needle-bits.ts. */
export function markValueKeys(
  memory: KernelMemory,
  first: Uint32Array,
  count: number,
  { slots, threshold }: Pick<BitmapChoice, "slots" | "threshold">,
): MarkedKeys {
  const kernels = memory.open();
  try {
    const keys = memory.copyInWords(first, count);
    const scratch = memory.take(slots);
    const bits = memory.take(slots / 8);
    const set = kernels.markValueKeys(keys, count, slots, threshold, scratch, bits);
    return { bits: memory.bytes(bits, slots / 8).slice(), count: set };
  } finally {
    memory.close();
  }
}

/** The compiled form of twin/needle-bits.ts. */
export function groupNeedleBits(
  memory: KernelMemory,
  maps: readonly Uint8Array[],
  slots: number,
): Uint8Array {
  const kernels = memory.open();
  try {
    const size = slots / 8;
    const mapsAt = memory.take(size * maps.length);
    const words = memory.take(slots * 8);
    const length = Math.ceil((slots * maps.length) / 8);
    const bits = memory.take(length);
    for (const [i, map] of maps.entries()) {
      const target = memory.bytes(mapsAt + i * size, size);
      if (map.length === 0) target.fill(0);
      else target.set(map);
    }
    kernels.groupNeedleBits(mapsAt, maps.length, slots, words, bits);
    return memory.bytes(bits, length).slice();
  } finally {
    memory.close();
  }
}
