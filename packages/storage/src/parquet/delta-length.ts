import type { ByteWriter } from "../bytes.js";
import {
  blockValues,
  encodeDelta,
  head,
  miniblocks,
  miniblockValues,
  paddedView,
  readBlockHead,
  readHeader,
} from "./delta.js";
import { corruptPage } from "./format.js";

/**
 * DELTA_LENGTH_BYTE_ARRAY: the lengths of the values, delta encoded, then their bytes one behind the other.
 * The lengths are written here; the caller appends the bytes.
 */
export function encodeLengths(out: ByteWriter, lengths: Uint32Array, count: number): void {
  encodeDelta(out, lengths, count, 0n);
}

export interface ByteArrayPage {
  /** Value i is `bytes[offsets[i] .. offsets[i+1])`; length: count + 1 */
  readonly offsets: Uint32Array;
  /** A view of the page. */
  readonly bytes: Uint8Array;
}

/**
 * Decodes a page of exactly `count` values. Reads up to 8 bytes past `page`, which must have padding. Throws
 * `internal` when the bytes are not such a page.
 */
export function decodeByteArrays(page: Uint8Array, count: number): ByteArrayPage {
  const view = paddedView(page);
  const limit = page.byteLength;
  const header = readHeader(view, limit, count);
  const offsets = new Uint32Array(count + 1);
  if (header.first < 0n || header.first > BigInt(limit)) throw corruptPage("length out of range");
  let at = header.end;
  state.length = Number(header.first);
  state.offset = state.length;
  state.negative = 0;
  if (count > 0) offsets[1] = state.offset;
  for (let from = 1; from < count; from += blockValues) {
    at = readBlockHead(view, limit, at);
    for (let m = 0; m < miniblocks; m++) {
      const start = from + m * miniblockValues;
      if (start >= count) break;
      const width = head.widths[m]!;
      if (width > 32) throw corruptPage(`length of ${width} bits`);
      if (at + width * 4 > limit) throw corruptPage("lengths end early");
      const end = Math.min(count, start + miniblockValues);
      unpack(view, at, width, head.least, offsets, start, end);
      at += width * 4;
    }
  }
  if (state.negative < 0 || state.offset !== limit - at) {
    throw corruptPage(`lengths give ${state.offset} bytes, ${limit - at} are there`);
  }
  return { offsets, bytes: page.subarray(at) };
}

/** The running length and offset of the page being decoded, between miniblocks. */
const state = { length: 0, offset: 0, negative: 0 };

function unpack(
  view: DataView,
  at: number,
  width: number,
  least: number,
  offsets: Uint32Array,
  from: number,
  to: number,
): void {
  let length = state.length;
  let offset = state.offset;
  let negative = state.negative;
  let bit = 0;
  if (width <= 25) {
    const mask = (1 << width) - 1;
    for (let i = from; i < to; i++) {
      length += least + ((view.getUint32(at + (bit >>> 3), true) >>> (bit & 7)) & mask);
      negative = Math.min(negative, length);
      offset += length;
      offsets[i + 1] = offset;
      bit += width;
    }
  } else {
    for (let i = from; i < to; i++) {
      const place = at + (bit >>> 3);
      const shift = bit & 7;
      const low = view.getUint32(place, true) >>> shift;
      const upperBits = width + shift - 32;
      let delta = low;
      if (upperBits > 0) {
        const upper = view.getUint32(place + 4, true) & ((1 << upperBits) - 1);
        delta += upper * 2 ** (32 - shift);
      } else if (upperBits < 0) {
        delta &= (1 << width) - 1;
      }
      length += least + delta;
      negative = Math.min(negative, length);
      offset += length;
      offsets[i + 1] = offset;
      bit += width;
    }
  }
  state.length = length;
  state.offset = offset;
  state.negative = negative;
}
