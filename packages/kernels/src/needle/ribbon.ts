import { mix } from "./needle-keys.js";

/** Slots that a key is spread over. */
export const ribbonWidth = 64;

/** Slots for so many keys. With fewer than 1.05 for each, absent keys pass much more often than every second time. */
export function slotsFor(keys: number): number {
  return keys === 0 ? 0 : Math.ceil(1.06 * keys) + ribbonWidth;
}

/** More keys than this have slots that doubles cannot place exactly. */
export const maxRibbonKeys = 1_900_000;

/** The first of the slots of a key. */
export function startOf(key: number, slots: number): number {
  return Math.floor((key * (slots - ribbonWidth + 1)) / 0x1_0000_0000);
}

/** Which of its slots a key uses: bits 0 to 31; the first always. */
export function lowCoefficient(key: number): number {
  return (mix((key + 0x6c8e9cf5) >>> 0) | 1) >>> 0;
}

/** Bits 32 to 63. */
export function highCoefficient(key: number): number {
  return mix(key ^ 0x2545f491);
}
