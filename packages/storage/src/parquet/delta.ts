import type { ByteWriter } from "../bytes.js";
import { corruptPage } from "./format.js";

/**
 * DELTA_BINARY_PACKED with blocks of 128 values in 4 miniblocks of 32:
 *
 *     varint 128 | varint 4 | varint count | zigzag first value
 *     per block of 128 deltas: zigzag least delta | 4 widths, a byte each | the miniblocks, 32 * width bits each
 *
 * A page of values is `base + values[i]`, where base is an int64 and the values are whole numbers of at most 51 bits, so
 * that nothing but the first value needs a BigInt. Figures: bench/segment.mjs.
 */
export function encodeDelta(
  out: ByteWriter,
  values: Float64Array | Uint32Array,
  count: number,
  base: bigint,
): void {
  writeHeader(out, count);
  if (count === 0) {
    out.u8(0);
    return;
  }
  out.zigzagBig(base + BigInt(values[0]!));
  for (let at = 1; at < count; at += blockValues) {
    encodeBlock(out, values, at, Math.min(blockValues, count - at));
  }
}

/** Where a decoder stopped. */
interface DeltaPage {
  readonly values: Float64Array;
  /** First byte behind the encoded values. */
  readonly end: number;
}

/**
 * Decodes a page of exactly `count` values as differences from `base`. Reads up to 8 bytes past `bytes`, which must
 * have padding. Throws `internal` when the bytes are not such a page, or a value is 2^53 or more away from the base.
 */
export function decodeDelta(bytes: Uint8Array, count: number, base: bigint): DeltaPage {
  const view = paddedView(bytes);
  const header = readHeader(view, bytes.byteLength, count);
  const values = new Float64Array(count);
  let at = header.end;
  if (count === 0) return { values, end: at };
  const first = Number(header.first - base);
  if (!Number.isSafeInteger(first)) throw corruptPage("first value is too far from the base");
  values[0] = first;
  for (let from = 1; from < count; from += blockValues) {
    at = readBlockHead(view, bytes.byteLength, at);
    const least = head.least;
    for (let m = 0; m < miniblocks; m++) {
      const start = from + m * miniblockValues;
      if (start >= count) break;
      const width = head.widths[m]!;
      if (at + width * 4 > bytes.byteLength) throw corruptPage("values end early");
      unpack(view, at, width, least, values, start, Math.min(count, start + miniblockValues));
      at += width * 4;
    }
  }
  return { values, end: at };
}

/** The widest value the decoders take; a page of this store never has more than 49 bits. */
const maxWidth = 56;
const blockValues = 128;
const miniblocks = 4;
const miniblockValues = 32;

/** What the last block head said: filled by `readBlockHead`, so that no object is made per block. */
const head = { least: 0, widths: new Uint8Array(miniblocks) };

/** Reads the head of a block into `head` and returns the place behind it. */
function readBlockHead(view: DataView, limit: number, at: number): number {
  let place = at;
  let value = 0;
  let scale = 1;
  for (;;) {
    if (place >= limit || scale > 2 ** 49)
      throw corruptPage("least delta is cut short or too long");
    const byte = view.getUint8(place++);
    value += (byte & 0x7f) * scale;
    if (byte < 0x80) break;
    scale *= 0x80;
  }
  head.least = value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  if (place + miniblocks > limit) throw corruptPage("widths are cut short");
  for (let m = 0; m < miniblocks; m++) {
    const width = view.getUint8(place++);
    if (width > maxWidth) throw corruptPage(`width of ${width} bits`);
    head.widths[m] = width;
  }
  return place;
}

interface DeltaHeader {
  readonly first: bigint;
  readonly end: number;
}

/** Reads the head of a page and checks that it holds `count` values. */
function readHeader(view: DataView, limit: number, count: number): DeltaHeader {
  // What every page of this store begins with: 128 in two bytes, 4.
  const isOwn = limit > 3 && view.getUint16(0, true) === 0x180 && view.getUint8(2) === miniblocks;
  if (!isOwn) checkLayout(view, limit);
  const stated = readVarint(view, limit, 3);
  if (Number(stated.value) !== count)
    throw corruptPage(`${stated.value} values, ${count} expected`);
  const { value: zigzag, end } = readVarint(view, limit, stated.end);
  if (typeof zigzag === "number") {
    return { first: BigInt(zigzag % 2 === 0 ? zigzag / 2 : -(zigzag + 1) / 2), end };
  }
  return { first: BigInt.asIntN(64, (zigzag >> 1n) ^ -(zigzag & 1n)), end };
}

function checkLayout(view: DataView, limit: number): void {
  const values = readVarint(view, limit, 0);
  if (values.value !== blockValues || readVarint(view, limit, values.end).value !== miniblocks)
    throw corruptPage("not in blocks of 128 in 4");
  throw corruptPage("head is longer than it has to be");
}

/** A bigint where a number is not enough: it is slow, and only first times need it. */
function readVarint(
  view: DataView,
  limit: number,
  from: number,
): { readonly value: number | bigint; readonly end: number } {
  let value = 0;
  let scale = 1;
  for (let at = from; at < limit && scale <= 2 ** 42; scale *= 0x80) {
    const byte = view.getUint8(at++);
    value += (byte & 0x7f) * scale;
    if (byte < 0x80) return { value, end: at };
  }
  return readLongVarint(view, limit, from);
}

function readLongVarint(view: DataView, limit: number, from: number) {
  let value = 0n;
  let at = from;
  for (let shift = 0n; ; shift += 7n) {
    if (at >= limit || shift > 63n) throw corruptPage("header is cut short or too long");
    const byte = view.getUint8(at++);
    value |= BigInt(byte & 0x7f) << shift;
    if (byte < 0x80) return { value, end: at };
  }
}

/** A view that reaches into the padding behind the bytes, which loads of whole words may touch. */
function paddedView(bytes: Uint8Array): DataView {
  const { buffer, byteOffset, byteLength } = bytes;
  const padding = Math.min(8, buffer.byteLength - byteOffset - byteLength);
  if (padding < 8) throw new Error("no padding behind the page");
  return new DataView(buffer, byteOffset, byteLength + padding);
}

function writeHeader(out: ByteWriter, count: number): void {
  out.varint(blockValues);
  out.varint(miniblocks);
  out.varint(count);
}

const deltas = new Float64Array(blockValues);

function encodeBlock(
  out: ByteWriter,
  values: Float64Array | Uint32Array,
  at: number,
  count: number,
): void {
  let least = Number.POSITIVE_INFINITY;
  let before = values[at - 1]!;
  for (let i = 0; i < count; i++) {
    const value = values[at + i]!;
    const delta = value - before;
    before = value;
    deltas[i] = delta;
    if (delta < least) least = delta;
  }
  out.zigzag(least);
  out.reserve(miniblocks + (blockValues / 8) * 56);
  const widthsAt = out.length;
  const bytes = out.buffer;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let place = widthsAt + miniblocks;
  for (let m = 0; m < miniblocks; m++) {
    const from = m * miniblockValues;
    const to = Math.min(count, from + miniblockValues);
    const width = from < to ? widthOf(from, to, least) : 0;
    bytes[widthsAt + m] = width;
    if (width === 0) continue;
    for (let i = to; i < from + miniblockValues; i++) deltas[i] = 0;
    pack(view, place, width, from);
    place += width * 4;
  }
  out.length = place;
}

/** Makes the deltas of a miniblock differences from the least, and returns the bits of the largest. */
function widthOf(from: number, to: number, least: number): number {
  let most = 0;
  for (let i = from; i < to; i++) {
    const value = deltas[i]! - least;
    deltas[i] = value;
    if (value > most) most = value;
  }
  if (most < 2 ** 32) return 32 - Math.clz32(most);
  return 64 - Math.clz32(most / 2 ** 32);
}

function pack(view: DataView, at: number, width: number, from: number): void {
  let place = at;
  let word = 0;
  let filled = 0;
  const low = Math.min(width, 32);
  const high = width - low;
  for (let i = from; i < from + miniblockValues; i++) {
    const value = deltas[i]!;
    const bits = value >>> 0;
    word |= bits << filled;
    filled += low;
    if (filled >= 32) {
      view.setUint32(place, word, true);
      place += 4;
      filled -= 32;
      word = filled === 0 ? 0 : bits >>> (low - filled);
    }
    if (high === 0) continue;
    const upper = Math.floor(value / 2 ** 32);
    word |= upper << filled;
    filled += high;
    if (filled >= 32) {
      view.setUint32(place, word, true);
      place += 4;
      filled -= 32;
      word = filled === 0 ? 0 : upper >>> (high - filled);
    }
  }
}

function unpack(
  view: DataView,
  at: number,
  width: number,
  least: number,
  values: Float64Array,
  from: number,
  to: number,
): void {
  let value = values[from - 1]!;
  if (width === 0) {
    for (let i = from; i < to; i++) {
      value += least;
      values[i] = value;
    }
    return;
  }
  let bit = 0;
  if (width <= 25) {
    const mask = (1 << width) - 1;
    for (let i = from; i < to; i++) {
      value += least + ((view.getUint32(at + (bit >>> 3), true) >>> (bit & 7)) & mask);
      values[i] = value;
      bit += width;
    }
    return;
  }
  for (let i = from; i < to; i++) {
    const place = at + (bit >>> 3);
    const shift = bit & 7;
    const low = view.getUint32(place, true) >>> shift;
    const upperBits = width + shift - 32;
    bit += width;
    if (upperBits > 0) {
      const upper = view.getUint32(place + 4, true) & masks[upperBits]!;
      value += least + (low + upper * scales[shift]!);
    } else {
      value += least + (upperBits === 0 ? low : low & masks[width]!);
    }
    values[i] = value;
  }
}

/** 2^bits - 1, up to 31 bits */
const masks = Int32Array.from({ length: 32 }, (_, bits) => 2 ** bits - 1);

/** 2^(32 - shift) */
const scales = Float64Array.from({ length: 8 }, (_, shift) => 2 ** (32 - shift));

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
      unpackLengths(view, at, width, head.least, offsets, start, end);
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

function unpackLengths(
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
