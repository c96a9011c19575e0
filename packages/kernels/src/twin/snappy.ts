import { corrupt, paddedBytes } from "../shared/bytes.js";
import type { Kernels } from "../shared/kernels.js";
import { readSnappyHeader, snappyCorruptText } from "../shared/raw-push.js";

/**
 * Decodes a raw snappy block (no frames) into padded bytes. The length header is checked against `maxBytes`
 * before memory is taken; anything that does not decode to exactly that length is corrupt.
 */
export const decodeSnappy: Kernels["decodeSnappy"] = (body, maxBytes) => {
  const { decodedBytes, start } = readSnappyHeader(body, maxBytes);
  const out = paddedBytes(decodedBytes);
  const end = body.length;
  let from = start;
  let to = 0;
  while (from < end) {
    const tag = body[from++]!;
    let length = (tag >>> 2) + 1;
    if ((tag & 3) === 0) {
      if (length > 60) {
        const extra = length - 60;
        if (from + extra > end) throw corrupt(snappyCorruptText);
        length = littleEndian(body, from, extra) + 1;
        from += extra;
      }
      if (length > end - from || length > decodedBytes - to) throw corrupt(snappyCorruptText);
      out.set(body.subarray(from, from + length), to);
      from += length;
      to += length;
      continue;
    }
    const offsetBytes = (tag & 3) === 3 ? 4 : tag & 3;
    if (from + offsetBytes > end) throw corrupt(snappyCorruptText);
    let offset = littleEndian(body, from, offsetBytes);
    from += offsetBytes;
    if (offsetBytes === 1) {
      length = ((tag >>> 2) & 7) + 4;
      offset += (tag >>> 5) << 8;
    }
    if (offset === 0 || offset > to || length > decodedBytes - to) throw corrupt(snappyCorruptText);
    copyWithin(out, to, offset, length);
    to += length;
  }
  if (to !== decodedBytes) throw corrupt(snappyCorruptText);
  return out;
};

function littleEndian(bytes: Uint8Array, at: number, count: number): number {
  let value = 0;
  for (let i = count - 1; i >= 0; i--) value = value * 256 + bytes[at + i]!;
  return value;
}

/** Ranges overlap when the offset is shorter than the length: the bytes between then repeat. */
function copyWithin(out: Uint8Array, to: number, offset: number, length: number): void {
  const from = to - offset;
  if (offset >= length && length >= 32) {
    out.copyWithin(to, from, from + length);
    return;
  }
  for (let i = 0; i < length; i++) out[to + i] = out[from + i]!;
}
