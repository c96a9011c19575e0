import { SkaldError } from "@skald/model";

/** The error of bytes that are not what their format says; `what` names the file. */
export function damaged(what: string, why: string): SkaldError {
  return new SkaldError("internal", `${what} is damaged: ${why}`);
}

/** The error of a file that a store has in a form that this reader does not know. */
export function unsupported(what: string, why: string): SkaldError {
  return new SkaldError("invalid_argument", `${what}: ${why}`);
}

/** Reads the numbers of Loki's files: big-endian words, and the varints of Go's `encoding/binary`. Throws at the end of the bytes. */
export class Cursor {
  at = 0;
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #what: string;

  constructor(bytes: Uint8Array, what: string, at = 0) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#what = what;
    this.at = at;
  }

  get length(): number {
    return this.#bytes.length;
  }

  byte(): number {
    return this.#bytes[this.#pass(1)]!;
  }

  u32(): number {
    return this.#view.getUint32(this.#pass(4));
  }

  u64(): bigint {
    return this.#view.getBigUint64(this.#pass(8));
  }

  /** A word of 64 bits that has to be a safe number: an offset or a length. */
  offset(): number {
    const value = this.u64();
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw this.#broken(`offset ${value}`);
    return Number(value);
  }

  /** An unsigned varint below 2^53. */
  uvarint(): number {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = this.byte();
      value += (byte & 0x7f) * scale;
      if (value > Number.MAX_SAFE_INTEGER) throw this.#broken("a number is too large");
      if (byte < 0x80) return value;
    }
  }

  /** A signed varint of up to 64 bits. */
  varint(): bigint {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = this.byte();
      if (shift > 63n) throw this.#broken("a number is too large");
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asIntN(64, value & 1n ? ~(value >> 1n) : value >> 1n);
    }
  }

  take(length: number): Uint8Array {
    const from = this.#pass(length);
    return this.#bytes.subarray(from, from + length);
  }

  text(): string {
    return Buffer.from(this.take(this.uvarint())).toString();
  }

  #pass(length: number): number {
    const from = this.at;
    if (from + length > this.#bytes.length) throw this.#broken("it ends too early");
    this.at = from + length;
    return from;
  }

  #broken(why: string): SkaldError {
    return damaged(this.#what, `${why}, at byte ${this.at}`);
  }
}

const crcTable = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  return crc;
});

/** CRC-32C (Castagnoli), RFC 3720 appendix B.4. */
export function crc32c(bytes: Uint8Array): number {
  let crc = -1;
  for (let i = 0; i < bytes.length; i++) crc = crcTable[(crc ^ bytes[i]!) & 0xff]! ^ (crc >>> 8);
  return ~crc >>> 0;
}
