import { type BitmapChoice, type MarkedKeys, markKeys } from "../needle/bitmap.js";
import {
  isLeftOut,
  isMixed,
  keysOfValues,
  nextKey,
  windowBytes,
  windowKey,
} from "../needle/needle-keys.js";
import { hasSigns } from "./needle-filter.js";

/** Marks the keys of all windows of the rows; row i is `bytes[offsets[i] .. offsets[i+1])`, and no window spans two. */
export function markNeedleKeys(
  bytes: Uint8Array,
  offsets: Uint32Array,
  rows: number,
  { slots, plainKeys, threshold }: BitmapChoice,
): MarkedKeys & { readonly hasSigns: boolean } {
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
}

/** Marks the keys of values, given the first of each. */
export function markValueKeys(
  first: Uint32Array,
  count: number,
  { slots, threshold }: Pick<BitmapChoice, "slots" | "threshold">,
): MarkedKeys {
  const keys = keysOfValues(first.subarray(0, count));
  const taken = threshold === 0 ? keys : keys.filter((key) => (key & 0xffff) < threshold);
  return markKeys(taken, slots);
}

/** Lays the bits of blocks slot by slot; an empty array stands for no bits. */
export function groupNeedleBits(maps: readonly Uint8Array[], slots: number): Uint8Array {
  const bits = new Uint8Array(Math.ceil((slots * maps.length) / 8));
  for (const [i, map] of maps.entries()) {
    for (let slot = 0; slot < map.length * 8; slot++) {
      const place = slot * maps.length + i;
      bits[place >>> 3]! |= ((map[slot >>> 3]! >>> (slot & 7)) & 1) << (place & 7);
    }
  }
  return bits;
}
