import { internal, takesMemory } from "@skald/model";

const initialBytes = 256;
/** Memory that messages are written in, one at a time: most are copied out of it smaller than they were guessed. */
let spare: Buffer<ArrayBuffer> | undefined;
const spareBytes = 4096;
/** Texts up to this length are written letter by letter: a call of the encoder costs more. */
const shortText = 48;

const noBytes = Buffer.from(new ArrayBuffer(0));

/** Writes the parts of which protobuf messages are made into one growing buffer. */
export class ProtoWriter {
  #bytes: Buffer<ArrayBuffer>;
  #at = 0;

  /** `sizeBytes`: what the message will take, as far as is known. */
  constructor(sizeBytes = initialBytes) {
    if (sizeBytes > initialBytes) {
      this.#bytes = Buffer.from(new ArrayBuffer(sizeBytes));
      return;
    }
    this.#bytes = spare ?? Buffer.from(new ArrayBuffer(spareBytes));
    spare = undefined;
  }

  /** What was written, in memory of its own; the last that is asked of a writer. */
  finish(): Uint8Array<ArrayBuffer> {
    const bytes = this.#bytes;
    if (bytes.length === spareBytes) {
      const own = new Uint8Array(this.#at);
      own.set(bytes.subarray(0, this.#at));
      spare = bytes;
      this.#bytes = noBytes;
      return own;
    }
    const written = new Uint8Array(bytes.buffer, 0, this.#at);
    return takesMemory(written) ? written : written.slice();
  }

  tag(field: number, wire: number): void {
    this.varint(field * 8 + wire);
  }

  /** A whole number from 0 to 2^53 - 1. */
  varint(value: number): void {
    this.#reserve(10);
    let left = value;
    while (left > 0x7f) {
      this.#bytes[this.#at++] = (left % 0x80) | 0x80;
      left = Math.floor(left / 0x80);
    }
    this.#bytes[this.#at++] = left;
  }

  double(value: number): void {
    this.#reserve(8);
    this.#at = this.#bytes.writeDoubleLE(value, this.#at);
  }

  /** Throws internal when the value has more than 64 bits. */
  int64(value: bigint): void {
    if (BigInt.asIntN(64, value) !== value) throw internal(`${value} has more than 64 bits`);
    this.#reserve(8);
    this.#at = this.#bytes.writeBigInt64LE(value, this.#at);
  }

  /** A length and the bytes of any kind of array. */
  bytes(value: ArrayBufferView): void {
    this.varint(value.byteLength);
    this.#reserve(value.byteLength);
    this.#bytes.set(bytesOf(value), this.#at);
    this.#at += value.byteLength;
  }

  /** A length and the text as UTF-8. */
  text(value: string): void {
    const { length } = value;
    if (length <= shortText && this.#ascii(value)) return;
    this.bytes(Buffer.from(value));
  }

  /** A length and what `write` writes. */
  nested<T>(value: T, write: (writer: ProtoWriter, value: T) => void): void {
    this.#reserve(1);
    const start = ++this.#at;
    write(this, value);
    const length = this.#at - start;
    if (length < 0x80) {
      this.#bytes[start - 1] = length;
      return;
    }
    // Most messages are short; of others the length takes more room than was left for it.
    const more = lengthOfVarint(length) - 1;
    this.#reserve(more);
    this.#bytes.copyWithin(start + more, start, this.#at);
    this.#at = start - 1;
    this.varint(length);
    this.#at += length;
  }

  /** Writes a short text if it is ASCII; else nothing. */
  #ascii(value: string): boolean {
    const { length } = value;
    this.#reserve(length + 1);
    const bytes = this.#bytes;
    const start = this.#at;
    bytes[start] = length;
    for (let i = 0; i < length; i++) {
      const code = value.charCodeAt(i);
      if (code > 0x7f) return false;
      bytes[start + 1 + i] = code;
    }
    this.#at = start + 1 + length;
    return true;
  }

  #reserve(count: number): void {
    const needed = this.#at + count;
    if (needed <= this.#bytes.length) return;
    const grown = Buffer.from(new ArrayBuffer(Math.max(needed, this.#bytes.length * 2)));
    this.#bytes.copy(grown, 0, 0, this.#at);
    this.#bytes = grown;
  }
}

/** The memory of any kind of array. */
function bytesOf(array: ArrayBufferView): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

function lengthOfVarint(value: number): number {
  let length = 1;
  for (let left = value; left > 0x7f; left = Math.floor(left / 0x80)) length++;
  return length;
}
