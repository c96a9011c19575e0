import { invalidArgument, tooLarge } from "@skald/model";

const magic = 0x184d2204;
const minMatch = 4;
const prime1 = 0x9e3779b1;
const prime2 = 0x85ebca77;
const prime3 = 0xc2b2ae3d;
const prime4 = 0x27d4eb2f;
const prime5 = 0x165667b1;

/**
 * Decodes consecutive LZ4 frames (format: lz4_Frame_format.md of the lz4 project). It checks the checksums of headers, and
 * those of blocks and contents that have one. Throws invalid_argument for malformed input, and too_large when more than
 * `maxBytes` come out.
 */
export function decodeLz4(body: Uint8Array, maxBytes: number): Uint8Array {
  const decoder = new Lz4Decoder(body, maxBytes);
  do decoder.frame();
  while (!decoder.isDone);
  return decoder.output;
}

class Lz4Decoder {
  readonly #in: Uint8Array;
  readonly #view: DataView;
  #at = 0;
  #out: Uint8Array;
  #end = 0;
  readonly #maxBytes: number;

  constructor(body: Uint8Array, maxBytes: number) {
    this.#in = body;
    this.#view = new DataView(body.buffer, body.byteOffset, body.byteLength);
    this.#maxBytes = maxBytes;
    this.#out = new Uint8Array(Math.min(maxBytes, 4 * body.length));
  }

  get isDone(): boolean {
    return this.#at >= this.#in.length;
  }

  get output(): Uint8Array {
    return this.#out.subarray(0, this.#end);
  }

  frame(): void {
    if (this.#u32() !== magic) throw broken("bad magic number");
    const header = this.#at;
    const flags = this.#byte();
    this.#byte();
    if (flags >> 6 !== 1) throw broken("unsupported version");
    if ((flags & 1) !== 0) throw broken("dictionaries are not supported");
    if ((flags & 8) !== 0) this.#pass(8);
    const sum = (xxh32(this.#in, header, this.#at) >>> 8) & 0xff;
    if (this.#byte() !== sum) throw broken("bad header checksum");
    const start = this.#end;
    const isLinked = (flags & 0x20) === 0;
    for (let size = this.#u32(); size !== 0; size = this.#u32()) {
      this.#block(size, isLinked ? start : this.#end, (flags & 0x10) !== 0);
    }
    if ((flags & 4) !== 0 && this.#u32() !== xxh32(this.#out, start, this.#end)) {
      throw broken("bad content checksum");
    }
  }

  /** Decodes a block of `size` bytes, whose matches reach back to `from` at most. */
  #block(size: number, from: number, isChecked: boolean): void {
    const length = size & 0x7fffffff;
    const start = this.#at;
    this.#pass(length);
    const end = this.#at;
    if (isChecked && this.#u32() !== xxh32(this.#in, start, end))
      throw broken("bad block checksum");
    if (size >>> 31 === 1) this.#copy(start, length);
    else this.#sequences(start, end, from);
  }

  #sequences(start: number, end: number, from: number): void {
    const next = this.#at;
    this.#at = start;
    while (this.#at < end) {
      const token = this.#byte();
      const literals = this.#length(token >> 4, end);
      if (literals > end - this.#at) throw broken("unexpected end");
      this.#copy(this.#at, literals);
      this.#at += literals;
      if (this.#at >= end) break;
      const offset = this.#byte() | (this.#byte() << 8);
      if (this.#at > end) throw broken("unexpected end");
      this.#match(offset, this.#length(token & 15, end) + minMatch, from);
    }
    this.#at = next;
  }

  #length(start: number, end: number): number {
    let length = start;
    if (start !== 15) return length;
    for (let byte = 255; byte === 255; length += byte) {
      if (this.#at >= end) throw broken("unexpected end");
      byte = this.#byte();
    }
    return length;
  }

  #copy(start: number, length: number): void {
    this.#reserve(length);
    this.#out.set(this.#in.subarray(start, start + length), this.#end);
    this.#end += length;
  }

  /** Repeats the bytes that were written `offset` bytes ago; the ranges may overlap. */
  #match(offset: number, length: number, from: number): void {
    const start = this.#end - offset;
    if (offset === 0 || start < from) throw broken("match outside of the window");
    this.#reserve(length);
    const out = this.#out;
    for (let i = 0; i < length; i++) out[this.#end + i] = out[start + i]!;
    this.#end += length;
  }

  #reserve(length: number): void {
    const needed = this.#end + length;
    if (needed > this.#maxBytes) {
      throw tooLarge(`request body too large: decoded body is larger than ${this.#maxBytes} bytes`);
    }
    if (needed <= this.#out.length) return;
    const larger = new Uint8Array(Math.min(this.#maxBytes, Math.max(needed, 2 * this.#out.length)));
    larger.set(this.#out.subarray(0, this.#end));
    this.#out = larger;
  }

  #byte(): number {
    if (this.#at >= this.#in.length) throw broken("unexpected end");
    return this.#in[this.#at++]!;
  }

  #u32(): number {
    const at = this.#at;
    this.#pass(4);
    return this.#view.getUint32(at, true);
  }

  #pass(length: number): void {
    if (length > this.#in.length - this.#at) throw broken("unexpected end");
    this.#at += length;
  }
}

/** Computes the xxHash-32 of a range with seed 0. */
export function xxh32(bytes: Uint8Array, start: number, end: number): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = start;
  let hash = prime5;
  if (end - start >= 16) {
    const lanes = [(prime1 + prime2) | 0, prime2 | 0, 0, -prime1 | 0];
    for (; at + 16 <= end; at += 16) {
      for (let i = 0; i < 4; i++) {
        const input = Math.imul(view.getUint32(at + 4 * i, true), prime2);
        lanes[i] = Math.imul(rotate((lanes[i]! + input) | 0, 13), prime1);
      }
    }
    const [a, b, c, d] = lanes as [number, number, number, number];
    hash = (rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18)) | 0;
  }
  hash = (hash + (end - start)) | 0;
  for (; at + 4 <= end; at += 4) {
    hash = Math.imul(rotate((hash + Math.imul(view.getUint32(at, true), prime3)) | 0, 17), prime4);
  }
  for (; at < end; at++) {
    hash = Math.imul(rotate((hash + Math.imul(bytes[at]!, prime5)) | 0, 11), prime1);
  }
  hash = Math.imul(hash ^ (hash >>> 15), prime2);
  hash = Math.imul(hash ^ (hash >>> 13), prime3);
  return (hash ^ (hash >>> 16)) >>> 0;
}

function rotate(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}

function broken(what: string): Error {
  return invalidArgument(`lz4: ${what}`);
}
