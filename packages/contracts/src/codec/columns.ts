import { paddingBytes } from "@skald/model";

/** Whether each number is at least the one before it; with `isStrict` larger. */
export function ascends(numbers: Uint32Array, isStrict = false): boolean {
  const least = isStrict ? 1 : 0;
  for (let i = 1; i < numbers.length; i++) {
    if (numbers[i]! - numbers[i - 1]! < least) return false;
  }
  return true;
}

/** Whether each number is below a bound. */
export function areBelow(numbers: Uint32Array, bound: number): boolean {
  for (let i = 0; i < numbers.length; i++) if (numbers[i]! >= bound) return false;
  return true;
}

/** Whether the numbers ascend and the last one is `total`; no numbers end at 0. */
export function endAt(ends: Uint32Array, total: number): boolean {
  return ascends(ends) && (ends[ends.length - 1] ?? 0) === total;
}

/** The bytes as they are when the message has enough bytes behind them, else a copy with padding. */
export function withPadding(bytes: Uint8Array): Uint8Array {
  const { buffer, byteOffset, length } = bytes;
  if (byteOffset + length + paddingBytes <= buffer.byteLength) return bytes;
  const padded = new Uint8Array(length + paddingBytes);
  padded.set(bytes);
  return padded.subarray(0, length);
}
