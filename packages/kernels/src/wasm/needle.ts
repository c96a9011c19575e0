import type { Kernels } from "../shared/kernels.js";
import type { WindowKeys } from "../shared/needle.js";
import type { KernelMemory } from "./memory.js";

/** Slots of the tables of distinct keys at first: 256 KiB of logs seldom fill half of them, and collide little. */
const mixedBits = 17;
const plainBits = 15;
/** Fewer for short texts: clearing them is most of what such a text costs. */
const minBits = 8;
/** Bytes that assembly/needle/windows.ts works in to collect keys, and to mark them (beside one for each slot). */
const collectScratchBytes = 210 * 1024;
const markScratchBytes = 180 * 1024;
/** Bytes of a batch of equations, and where they begin: assembly/needle/ribbon.ts. */
const equationsBytes = (2048 + 8) * 12;

/** The compiled form of twin/needle.ts. */
export const collectNeedleKeys =
  (memory: KernelMemory): Kernels["collectNeedleKeys"] =>
  (bytes, offsets, rows) => {
    for (let more = 0; ; more++) {
      const found = collect(memory, bytes, offsets, rows, more);
      if (found !== undefined) return found;
    }
  };

/** Undefined when the keys are too many for the tables. */
function collect(
  memory: KernelMemory,
  bytes: Uint8Array,
  offsets: Uint32Array,
  rows: number,
  more: number,
): WindowKeys | undefined {
  const kernels = memory.open();
  try {
    const low = offsets[0]!;
    const text = memory.copyIn(bytes.subarray(low, offsets[rows]));
    const starts = memory.copyInWords(offsets, rows + 1);
    const scratch = memory.take(collectScratchBytes);
    // A text has fewer windows than bytes, and two slots for each hold all of its keys.
    const enough = Math.max(minBits, 33 - Math.clz32(offsets[rows]! - low));
    const tables = [mixedBits, plainBits].map((most) => {
      const bits = Math.min(most, enough) + more;
      const slots = memory.take(2 ** bits * 4);
      return { slots, count: 2 ** bits, keys: memory.take(2 ** bits * 4) };
    });
    for (const { slots, count } of tables) memory.bytes(slots, count * 4).fill(0);
    const control = memory.take(8 * 4);
    const words = tables.flatMap(({ slots, count, keys }) => [slots, count, keys, 0]);
    memory.words(control, 8).set(words);
    const outcome = kernels.collectNeedleKeys(text - low, starts, rows, control, scratch);
    if (outcome < 0) return undefined;
    const counts = memory.words(control, 8);
    const [mixed, plain] = tables.map(({ keys }, i) => memory.words(keys, counts[i * 4 + 3]!));
    return { mixed: mixed!, plain: plain!, hasSigns: outcome === 1 };
  } finally {
    memory.close();
  }
}

/** The compiled form of twin/needle.ts. */
export const solveNeedleFilter =
  (memory: KernelMemory): Kernels["solveNeedleFilter"] =>
  (keys, slots, firstBlock) => {
    const kernels = memory.open();
    try {
      const total = keys.reduce((sum, { length }) => sum + length, 0);
      const keysAt = memory.take(total * 4);
      let at = keysAt;
      for (const own of keys) {
        memory.words(at, own.length).set(own);
        at += own.length * 4;
      }
      const counts = Uint32Array.from(keys, ({ length }) => length);
      const countsAt = memory.copyInWords(counts, counts.length);
      const rowsAt = memory.take(2 * (slots * 8 + 8));
      const wordsAt = memory.take(slots * 8);
      const length = Math.ceil((slots * keys.length) / 8);
      const bitsAt = memory.take(length);
      const { length: blocks } = keys;
      const scratch = memory.take(equationsBytes);
      const places = [rowsAt, wordsAt, bitsAt, scratch] as const;
      kernels.solveNeedleFilter(keysAt, countsAt, blocks, slots, firstBlock, ...places);
      return memory.bytes(bitsAt, length).slice();
    } finally {
      memory.close();
    }
  };

/** The compiled form of twin/needle.ts. */
export const markNeedleKeys =
  (memory: KernelMemory): Kernels["markNeedleKeys"] =>
  (bytes, offsets, rows, { slots, plainKeys, threshold }) => {
    const kernels = memory.open();
    try {
      const low = offsets[0]!;
      const text = memory.copyIn(bytes.subarray(low, offsets[rows])) - low;
      const starts = memory.copyInWords(offsets, rows + 1);
      const scratch = memory.take(markScratchBytes + slots);
      const bits = memory.take(slots / 8);
      const extra = plainKeys === 3 ? 1 : 0;
      const places = [scratch, bits] as const;
      const found = kernels.markNeedleKeys(text, starts, rows, slots, extra, threshold, ...places);
      const hasSigns = (found & 1) === 1;
      return { bits: memory.bytes(bits, slots / 8).slice(), count: found >>> 1, hasSigns };
    } finally {
      memory.close();
    }
  };

/** The compiled form of twin/needle.ts. */
export const markValueKeys =
  (memory: KernelMemory): Kernels["markValueKeys"] =>
  (first, count, { slots, threshold }) => {
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
  };

/** The compiled form of twin/needle.ts. */
export const groupNeedleBits =
  (memory: KernelMemory): Kernels["groupNeedleBits"] =>
  (maps, slots) => {
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
  };
