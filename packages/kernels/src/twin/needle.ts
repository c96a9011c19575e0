import type { Kernels } from "../shared/kernels.js";
import {
  highCoefficient,
  isLeftOut,
  isMixed,
  keysOfValues,
  lowCoefficient,
  markKeys,
  mix,
  nextKey,
  startOf,
  windowBytes,
  windowKey,
} from "../shared/needle.js";

/** The keys of all windows of the rows; row i is `bytes[offsets[i] .. offsets[i+1])`, and no window spans two. */
export const collectNeedleKeys: Kernels["collectNeedleKeys"] = (bytes, offsets, rows) => {
  const mixed = new Set<number>();
  const plain = new Set<number>();
  for (let row = 0; row < rows; row++) {
    const end = offsets[row + 1]!;
    for (let at = offsets[row]!; at + windowBytes <= end; at++) {
      if (!isMixed(bytes, at)) plain.add(windowKey(bytes, at));
      else if (!isLeftOut(bytes, at)) mixed.add(windowKey(bytes, at));
    }
  }
  return {
    mixed: Uint32Array.from(mixed),
    plain: Uint32Array.from(plain),
    hasSigns: hasSigns(bytes.subarray(offsets[0], offsets[rows])),
  };
};

/** True when the bytes hold U+212A or U+017F, which fold to k and s. */
function hasSigns(bytes: Uint8Array): boolean {
  for (let at = bytes.indexOf(0xc5); at >= 0; at = bytes.indexOf(0xc5, at + 1)) {
    if (bytes[at + 1] === 0xbf) return true;
  }
  for (let at = bytes.indexOf(0xe2); at >= 0; at = bytes.indexOf(0xe2, at + 1)) {
    if (bytes[at + 1] === 0x84 && bytes[at + 2] === 0xaa) return true;
  }
  return false;
}

/**
 * Builds the filters of a group of blocks: for each block bits, one a slot, so that the bits at the slots of each of its
 * keys have even parity: a homogeneous ribbon filter (P. Dillinger, L. Hübschle-Schneider, P. Sanders and S. Walzer,
 * "Fast Succinct Retrieval and Approximate Membership using Ribbon"). Bit `slot * blocks + i` of the answer is that of
 * block i; `firstBlock` seeds the bits that no key decides.
 */
export const solveNeedleFilter: Kernels["solveNeedleFilter"] = (keys, slots, firstBlock) => {
  const bits = new Uint8Array(Math.ceil((slots * keys.length) / 8));
  for (const [i, own] of keys.entries()) {
    const solution = solve(eliminate(own, slots), slots, mix(firstBlock + i + 1));
    for (let slot = 0; slot < slots; slot++) {
      const place = slot * keys.length + i;
      bits[place >>> 3]! |= solution[slot]! << (place & 7);
    }
  }
  return bits;
};

/** Equations by the first slot that they use: a row of 64 coefficients in two halves; 0: none. */
interface Rows {
  readonly low: Uint32Array;
  readonly high: Uint32Array;
}

function eliminate(keys: Uint32Array, slots: number): Rows {
  const rows = { low: new Uint32Array(slots), high: new Uint32Array(slots) };
  for (const key of keys) {
    let slot = startOf(key, slots);
    let low = lowCoefficient(key);
    let high = highCoefficient(key);
    while (rows.low[slot] !== 0 || rows.high[slot] !== 0) {
      low = (low ^ rows.low[slot]!) >>> 0;
      high = (high ^ rows.high[slot]!) >>> 0;
      // what the other equations say already
      if (low === 0 && high === 0) break;
      const shift = low !== 0 ? 31 - Math.clz32(low & -low) : 63 - Math.clz32(high & -high);
      slot += shift;
      if (shift >= 32) {
        low = high >>> (shift - 32);
        high = 0;
      } else if (shift > 0) {
        low = ((low >>> shift) | (high << (32 - shift))) >>> 0;
        high >>>= shift;
      }
    }
    if (low === 0 && high === 0) continue;
    rows.low[slot] = low;
    rows.high[slot] = high;
  }
  return rows;
}

function solve({ low, high }: Rows, slots: number, seed: number): Uint8Array {
  const solution = new Uint8Array(slots);
  // the bits of this slot and the 63 behind it, bit 0 that of this slot
  let nearer = 0;
  let farther = 0;
  for (let slot = slots - 1; slot >= 0; slot--) {
    farther = (farther << 1) | (nearer >>> 31);
    nearer <<= 1;
    const isFree = low[slot] === 0 && high[slot] === 0;
    const bit = isFree
      ? mix(slot ^ seed) & 1
      : parity((nearer & low[slot]!) ^ (farther & high[slot]!));
    nearer |= bit;
    solution[slot] = bit;
  }
  return solution;
}

function parity(value: number): number {
  let bits = value ^ (value >>> 16);
  bits ^= bits >>> 8;
  bits ^= bits >>> 4;
  return (0x6996 >>> (bits & 15)) & 1;
}

/** Marks the keys of all windows of the rows; row i is `bytes[offsets[i] .. offsets[i+1])`, and no window spans two. */
export const markNeedleKeys: Kernels["markNeedleKeys"] = (
  bytes,
  offsets,
  rows,
  { slots, plainKeys, threshold },
) => {
  const keys = new Set<number>();
  for (let row = 0; row < rows; row++) {
    const end = offsets[row + 1]!;
    for (let at = offsets[row]!; at + windowBytes <= end; at++) {
      const isPlain = !isMixed(bytes, at);
      if (!isPlain && isLeftOut(bytes, at)) continue;
      const key = windowKey(bytes, at);
      if (threshold !== 0 && (key & 0xffff) >= threshold) continue;
      keys.add(key);
      if (!isPlain || plainKeys === 1 || threshold !== 0) continue;
      keys.add(nextKey(key));
      keys.add(nextKey(nextKey(key)));
    }
  }
  const marked = markKeys(keys, slots);
  return { ...marked, hasSigns: hasSigns(bytes.subarray(offsets[0], offsets[rows])) };
};

/** Marks the keys of values, given the first of each. */
export const markValueKeys: Kernels["markValueKeys"] = (first, count, { slots, threshold }) => {
  const keys = keysOfValues(first.subarray(0, count));
  const taken = threshold === 0 ? keys : keys.filter((key) => (key & 0xffff) < threshold);
  return markKeys(taken, slots);
};

/** Lays the bits of blocks slot by slot; an empty array stands for no bits. */
export const groupNeedleBits: Kernels["groupNeedleBits"] = (maps, slots) => {
  const bits = new Uint8Array(Math.ceil((slots * maps.length) / 8));
  for (const [i, map] of maps.entries()) {
    for (let slot = 0; slot < map.length * 8; slot++) {
      const place = slot * maps.length + i;
      bits[place >>> 3]! |= ((map[slot >>> 3]! >>> (slot & 7)) & 1) << (place & 7);
    }
  }
  return bits;
};
