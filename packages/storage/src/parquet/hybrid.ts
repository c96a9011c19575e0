import type { ByteWriter } from "../bytes.js";
import { corruptPage } from "./format.js";

/**
 * Parquet's mix of run lengths and bit packing, without a length before it (as data pages V2 have it):
 *
 *     run      varint (count << 1)      | the value in ceil(width / 8) bytes
 *     packed   varint (groups << 1 | 1) | groups of 8 values, width bits each
 *
 * Bits needed for the values 0 .. most.
 */
export function bitWidth(most: number): number {
  return 32 - Math.clz32(most);
}

type Codes = Uint8Array | Uint16Array | Uint32Array;

/** Writes one run; a count of 0 writes nothing. */
export function encodeRun(out: ByteWriter, value: number, count: number, width: number): void {
  if (count === 0) return;
  out.varint(count * 2);
  for (let bit = 0; bit < width; bit += 8) out.u8((value >>> bit) & 0xff);
}

/** Writes values, as runs where 8 or more equal ones follow each other and packed elsewhere. */
export function encodeHybrid(out: ByteWriter, values: Codes, count: number, width: number): void {
  let packedFrom = 0;
  let at = 0;
  while (at < count) {
    const value = values[at]!;
    let end = at + 1;
    while (end < count && values[end] === value) end++;
    // A packed stretch is whole groups of 8, so the run gives it what its last group lacks.
    const lacking = (8 - ((at - packedFrom) & 7)) & 7;
    if (end - at - lacking >= 8) {
      encodePacked(out, values, packedFrom, at + lacking, width);
      encodeRun(out, value, end - at - lacking, width);
      packedFrom = end;
    }
    at = end;
  }
  encodePacked(out, values, packedFrom, count, width);
}

/** Decodes exactly `count` values of a width of at most 24 bits into `values`; returns the place behind the last. */
export function decodeHybrid(
  bytes: Uint8Array,
  width: number,
  values: Codes,
  count: number,
): number {
  if (width > 24) throw corruptPage(`levels or codes of ${width} bits`);
  let at = 0;
  let done = 0;
  while (done < count) {
    let header = 0;
    for (let shift = 0; ; shift += 7) {
      if (at >= bytes.byteLength || shift > 28) throw corruptPage("run header is cut short");
      const byte = bytes[at++]!;
      header += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) break;
    }
    const size = Math.floor(header / 2);
    if (size === 0) throw corruptPage("empty run");
    if (header % 2 === 1) {
      const end = at + size * width;
      if (end > bytes.byteLength) throw corruptPage("packed values end early");
      const take = Math.min(count - done, size * 8);
      decodePacked(bytes, at, width, values, done, take);
      done += take;
      at = end;
      continue;
    }
    if (size > count - done) throw corruptPage("run is longer than the page");
    let value = 0;
    for (let bit = 0; bit < width; bit += 8) {
      if (at >= bytes.byteLength) throw corruptPage("run value is cut short");
      value |= bytes[at++]! << bit;
    }
    values.fill(value, done, done + size);
    done += size;
  }
  return at;
}

function encodePacked(
  out: ByteWriter,
  values: Codes,
  from: number,
  to: number,
  width: number,
): void {
  const groups = (to - from + 7) >>> 3;
  if (groups === 0) return;
  out.varint(groups * 2 + 1);
  out.reserve(groups * width);
  const bytes = out.buffer;
  let place = out.length;
  let word = 0;
  let filled = 0;
  for (let i = from; i < from + groups * 8; i++) {
    word |= (i < to ? values[i]! : 0) << filled;
    filled += width;
    while (filled >= 8) {
      bytes[place++] = word & 0xff;
      word >>>= 8;
      filled -= 8;
    }
  }
  out.length = place;
}

function decodePacked(
  bytes: Uint8Array,
  at: number,
  width: number,
  values: Codes,
  from: number,
  count: number,
): void {
  const mask = (1 << width) - 1;
  let next = from;
  let bit = at * 8;
  if (count >= minLoads && width > 0) {
    // A load of four bytes holds any value; the last ones have fewer behind them.
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const end = from + count - 32;
    for (; next < end; next++) {
      values[next] = (view.getUint32(bit >>> 3, true) >>> (bit & 7)) & mask;
      bit += width;
    }
  }
  let place = bit >>> 3;
  let word = 0;
  let filled = 0;
  if ((bit & 7) > 0) {
    word = bytes[place++]! >>> (bit & 7);
    filled = 8 - (bit & 7);
  }
  for (; next < from + count; next++) {
    while (filled < width) {
      word |= bytes[place++]! << filled;
      filled += 8;
    }
    values[next] = word & mask;
    word >>>= width;
    filled -= width;
  }
}

/** So many values are decoded faster with loads of words. */
const minLoads = 64;
