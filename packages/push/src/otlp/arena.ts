import type { TakeBytes } from "@skald/kernels";
import { paddingBytes, tooLarge } from "@skald/model";

const zero = 0x30;
const hexDigits = Uint8Array.from("0123456789abcdef", (digit) => digit.charCodeAt(0));

/** A text that grows at its end; ranges of it stay what they are. Throws too_large beyond its limit. */
export class Arena {
  bytes: Uint8Array;
  end = 0;
  readonly #maxBytes: number;

  /** Begins with room for `capacity` bytes, from `take` when given. */
  constructor(capacity: number, maxBytes: number, take?: TakeBytes) {
    this.#maxBytes = maxBytes;
    this.bytes = take?.(capacity) ?? new Uint8Array(capacity + paddingBytes).subarray(0, capacity);
  }

  /** Makes room for so many more bytes. */
  reserve(length: number): void {
    const needed = this.end + length;
    if (needed <= this.bytes.length) return;
    if (needed > this.#maxBytes) {
      throw tooLarge(`request body too large: decoded body is larger than ${this.#maxBytes} bytes`);
    }
    const capacity = Math.min(this.#maxBytes, Math.max(needed, this.bytes.length * 2));
    const larger = new Uint8Array(capacity + paddingBytes).subarray(0, capacity);
    larger.set(this.bytes.subarray(0, this.end));
    this.bytes = larger;
  }

  byte(byte: number): void {
    if (this.end === this.bytes.length) this.reserve(1);
    this.bytes[this.end++] = byte;
  }

  /** Appends ASCII text. */
  ascii(text: string): void {
    this.reserve(text.length);
    for (let i = 0; i < text.length; i++) this.bytes[this.end++] = text.charCodeAt(i);
  }

  /** Appends any text. */
  utf8(text: string): void {
    const { length } = text;
    this.reserve(3 * length);
    this.end += Buffer.from(this.bytes.buffer, this.bytes.byteOffset + this.end).write(text);
  }

  /** Appends a range of other bytes, or of its own. */
  copy(from: Uint8Array, start: number, length: number): void {
    this.reserve(length);
    if (length > 64) this.bytes.set(from.subarray(start, start + length), this.end);
    else for (let i = 0; i < length; i++) this.bytes[this.end + i] = from[start + i]!;
    this.end += length;
  }

  /** Appends a fixed 32-bit number, its lowest byte first. */
  fixed32(value: number): void {
    this.reserve(4);
    for (let shift = 0; shift < 32; shift += 8) this.bytes[this.end++] = value >>> shift;
  }

  hex(from: Uint8Array, start: number, length: number): void {
    this.reserve(2 * length);
    for (let i = start; i < start + length; i++) {
      const byte = from[i]!;
      this.bytes[this.end++] = hexDigits[byte >> 4]!;
      this.bytes[this.end++] = hexDigits[byte & 15]!;
    }
  }

  /** Appends a whole number below 2^53 and not below 0, with leading zeros up to `digits`. */
  decimal(value: number, digits = 1): void {
    let count = digits;
    for (let bound = 10 ** digits; value >= bound; bound *= 10) count++;
    this.reserve(count);
    let rest = value;
    let at = this.end + count;
    for (; rest > 0xffff_ffff; rest = Math.floor(rest / 10)) this.bytes[--at] = zero + (rest % 10);
    for (let small = rest >>> 0; at > this.end; ) {
      const tenth = (small / 10) >>> 0;
      this.bytes[--at] = zero + small - 10 * tenth;
      small = tenth;
    }
    this.end += count;
  }
}
