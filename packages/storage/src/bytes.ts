import { internal } from "@skald/model";

/**
 * Bytes that grow at the end, little-endian: log records, and pages and metadata of segments. A writer can be cleared
 * and used again, so that nothing is allocated per page; hot encoders reserve room and fill `buffer` themselves.
 */
export class ByteWriter {
  buffer: Buffer;
  length = 0;

  constructor(capacity = 1024) {
    this.buffer = Buffer.allocUnsafe(capacity);
  }

  clear(): void {
    this.length = 0;
  }

  /** What was written, as a view that the next write may overwrite or leave behind. */
  view(): Buffer {
    return this.buffer.subarray(0, this.length);
  }

  /** Makes room for `count` more bytes. */
  reserve(count: number): void {
    const want = this.length + count;
    if (want <= this.buffer.length) return;
    const grown = Buffer.allocUnsafe(Math.max(want, this.buffer.length * 2));
    this.buffer.copy(grown, 0, 0, this.length);
    this.buffer = grown;
  }

  /** The next `count` bytes, which the caller fills at once. */
  take(count: number): Buffer {
    this.reserve(count);
    const room = this.buffer.subarray(this.length, this.length + count);
    this.length += count;
    return room;
  }

  u8(value: number): void {
    this.reserve(1);
    this.buffer[this.length++] = value;
  }

  /** Also takes negative numbers, as two's complement. */
  u32(value: number): void {
    this.reserve(4);
    const { buffer } = this;
    let at = this.length;
    buffer[at++] = value;
    buffer[at++] = value >>> 8;
    buffer[at++] = value >>> 16;
    buffer[at++] = value >>> 24;
    this.length = at;
  }

  u64(value: bigint): void {
    this.reserve(8);
    this.length = this.buffer.writeBigUInt64LE(BigInt.asUintN(64, value), this.length);
  }

  /** Unsigned LEB128 of a whole number below 2^53. */
  varint(value: number): void {
    this.reserve(10);
    let rest = value;
    while (rest >= 0x80) {
      this.buffer[this.length++] = (rest % 0x80) | 0x80;
      rest = Math.floor(rest / 0x80);
    }
    this.buffer[this.length++] = rest;
  }

  /** Zigzag LEB128 of a whole number whose magnitude is below 2^52. */
  zigzag(value: number): void {
    this.varint(value < 0 ? -2 * value - 1 : 2 * value);
  }

  /** Zigzag LEB128 of any int64. */
  zigzagBig(value: bigint): void {
    this.reserve(10);
    let rest = BigInt.asUintN(64, (value << 1n) ^ (value >> 63n));
    while (rest >= 0x80n) {
      this.buffer[this.length++] = Number(rest & 0x7fn) | 0x80;
      rest >>= 7n;
    }
    this.buffer[this.length++] = Number(rest);
  }

  /** The bytes alone: the reader must know how many. */
  append(bytes: Uint8Array): void {
    this.reserve(bytes.byteLength);
    this.buffer.set(bytes, this.length);
    this.length += bytes.byteLength;
  }

  /** u32 length, then the bytes. */
  bytes(value: Uint8Array): void {
    this.u32(value.byteLength);
    this.append(value);
  }

  /** u32 length, then UTF-8. */
  text(value: string): void {
    if (value.length <= maxShortText && this.#shortText(value)) return;
    const length = Buffer.byteLength(value);
    this.u32(length);
    this.reserve(length);
    this.length += this.buffer.write(value, this.length);
  }

  /** False if a character is not ASCII; then nothing is written. */
  #shortText(value: string): boolean {
    const { length } = value;
    this.reserve(4 + length);
    const { buffer } = this;
    const at = this.length + 4;
    for (let i = 0; i < length; i++) {
      const code = value.charCodeAt(i);
      if (code > 0x7f) return false;
      buffer[at + i] = code;
    }
    this.u32(length);
    this.length += length;
    return true;
  }

  /** u32 count, then the values. */
  u32s(values: Uint32Array | readonly number[]): void {
    this.u32(values.length);
    if (values instanceof Uint32Array && values.length > maxSingleValues) {
      this.append(bytesOf(values));
      return;
    }
    this.reserve(4 * values.length);
    for (let i = 0; i < values.length; i++) this.u32(values[i]!);
  }
}

/** Up to this length a text is written faster without a call of Node. */
const maxShortText = 32;

/** So many values are written one by one faster than through a view of their memory. */
const maxSingleValues = 16;

/** Reads what a ByteWriter wrote. Throws `internal` at the first value that the bytes do not hold. */
export class ByteReader {
  readonly #buffer: Buffer;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  u8(): number {
    return this.#buffer[this.#advance(1)]!;
  }

  u16(): number {
    return this.#buffer.readUInt16LE(this.#advance(2));
  }

  u32(): number {
    return this.#buffer.readUInt32LE(this.#advance(4));
  }

  i32(): number {
    return this.#buffer.readInt32LE(this.#advance(4));
  }

  text(): string {
    const length = this.u32();
    const at = this.#advance(length);
    return this.#buffer.toString("utf8", at, at + length);
  }

  /** A view, not a copy. */
  bytes(): Uint8Array {
    return this.raw(this.u32());
  }

  u32s(): Uint32Array {
    return this.u32Array(this.count(4));
  }

  u32Array(count: number): Uint32Array {
    return new Uint32Array(this.#aligned(4 * count));
  }

  f64Array(count: number): Float64Array {
    return new Float64Array(this.#aligned(8 * count));
  }

  /** A view, not a copy. */
  raw(length: number): Uint8Array {
    const at = this.#advance(length);
    return this.#buffer.subarray(at, at + length);
  }

  /** A count of things that take at least `minBytes` each, so that it bounds what the caller allocates. */
  count(minBytes: number): number {
    const count = this.u32();
    if (count * minBytes > this.#buffer.length - this.#at) {
      throw internal(`${this.#buffer.length} bytes are too few for ${count} values`);
    }
    return count;
  }

  oneOf<T>(values: readonly T[]): T {
    const code = this.u8();
    const value = values[code];
    if (value === undefined) throw internal(`code ${code} is not known`);
    return value;
  }

  #aligned(length: number): ArrayBuffer {
    return new Uint8Array(this.raw(length)).buffer;
  }

  #advance(length: number): number {
    const at = this.#at;
    if (at + length > this.#buffer.length) {
      throw internal(`${this.#buffer.length} bytes end inside a value of ${length}`);
    }
    this.#at = at + length;
    return at;
  }
}

/** The memory of an array, which is little-endian on every platform that Node runs on. */
export function bytesOf(values: Uint32Array | Float64Array): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}

/** Memory for pages, which the caller takes back when it is done with them. */
export interface PageMemory {
  /** That many bytes with padding behind them, whatever they hold. */
  take(bytes: number): Uint8Array;
}

/** Where each of some lists that follow each other begins, given how long each is, and where the last one ends. */
export function runningSum(counts: ArrayLike<number>): Uint32Array {
  const sums = new Uint32Array(counts.length + 1);
  for (let i = 0; i < counts.length; i++) sums[i + 1] = sums[i]! + counts[i]!;
  return sums;
}
