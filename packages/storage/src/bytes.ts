import { internal } from "@skald/model";

/** Writes little-endian values one after another into a buffer that grows. */
export class ByteWriter {
  #buffer = Buffer.allocUnsafe(256);
  #end = 0;

  u8(value: number): void {
    this.#reserve(1);
    this.#buffer[this.#end++] = value;
  }

  /** Also takes negative numbers, as two's complement. */
  u32(value: number): void {
    this.#reserve(4);
    this.#buffer.writeUInt32LE(value >>> 0, this.#end);
    this.#end += 4;
  }

  /** Length, then UTF-8. */
  text(value: string): void {
    const length = Buffer.byteLength(value);
    this.u32(length);
    this.#reserve(length);
    this.#end += this.#buffer.write(value, this.#end);
  }

  /** Length, then the bytes. */
  bytes(value: Uint8Array): void {
    this.u32(value.byteLength);
    this.raw(value);
  }

  /** Count, then the values. */
  u32s(values: Uint32Array): void {
    this.u32(values.length);
    this.raw(bytesOf(values));
  }

  /** The bytes alone: the reader must know how many. */
  raw(value: Uint8Array): void {
    this.#reserve(value.byteLength);
    this.#buffer.set(value, this.#end);
    this.#end += value.byteLength;
  }

  /** Room for `length` bytes that the caller fills at once. */
  take(length: number): Buffer {
    this.#reserve(length);
    const room = this.#buffer.subarray(this.#end, this.#end + length);
    this.#end += length;
    return room;
  }

  finish(): Buffer {
    return this.#buffer.subarray(0, this.#end);
  }

  #reserve(length: number): void {
    if (this.#end + length <= this.#buffer.length) return;
    const grown = Buffer.allocUnsafe(Math.max(this.#end + length, 2 * this.#buffer.length));
    this.#buffer.copy(grown, 0, 0, this.#end);
    this.#buffer = grown;
  }
}

/** Reads what a ByteWriter wrote. Throws internal at the first value that the bytes do not hold. */
export class ByteReader {
  readonly #buffer: Buffer;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  u8(): number {
    return this.#buffer[this.#advance(1)] as number;
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
      throw internal(`record holds ${this.#buffer.length} bytes, too few for ${count} values`);
    }
    return count;
  }

  oneOf<T>(values: readonly T[]): T {
    const code = this.u8();
    const value = values[code];
    if (value === undefined) throw internal(`record has the unknown code ${code}`);
    return value;
  }

  #aligned(length: number): ArrayBuffer {
    return new Uint8Array(this.raw(length)).buffer;
  }

  #advance(length: number): number {
    const at = this.#at;
    if (at + length > this.#buffer.length) {
      throw internal(`record ends at byte ${this.#buffer.length}, inside a value of ${length}`);
    }
    this.#at = at + length;
    return at;
  }
}

/** The memory of an array, which is little-endian on every platform that Node runs on. */
export function bytesOf(values: Uint32Array | Float64Array): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}
