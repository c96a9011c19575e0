import { bodyTooLarge, corrupt } from "../bytes/kernel-error.js";

/** The length header of a raw snappy block. */
export interface SnappyHeader {
  readonly decodedBytes: number;
  /** Where the elements begin. */
  readonly start: number;
}

/** Text of a body that is not raw snappy, as clients of the push API know it. */
export const snappyCorruptText = "snappy: corrupt input";

/** An element of 3 bytes yields at most 64: no block grows by more. */
const maxGrowth = 22;

/**
 * Reads the header and refuses it before memory is taken: above `maxBytes` as too_large, and as corrupt when the
 * block is too short to yield that many bytes.
 */
export function readSnappyHeader(block: Uint8Array, maxBytes: number): SnappyHeader {
  let decodedBytes = 0;
  let scale = 1;
  for (let at = 0; at < block.length && at < 5; at++) {
    const byte = block[at]!;
    decodedBytes += (byte & 0x7f) * scale;
    scale *= 128;
    if (byte >= 0x80) continue;
    const start = at + 1;
    if (decodedBytes > 0xffffffff) throw corrupt(snappyCorruptText);
    if (decodedBytes > maxBytes) throw bodyTooLarge(decodedBytes, maxBytes);
    if (decodedBytes > (block.length - start) * maxGrowth) throw corrupt(snappyCorruptText);
    return { decodedBytes, start };
  }
  throw corrupt(snappyCorruptText);
}
