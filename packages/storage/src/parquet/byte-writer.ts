/** Bytes that grow at the end; reused between pages so that nothing is allocated per page. */
export class ByteWriter {
  bytes: Buffer;
  length = 0;

  constructor(capacity = 1024) {
    this.bytes = Buffer.allocUnsafeSlow(capacity);
  }

  clear(): void {
    this.length = 0;
  }

  /** What was written, as a view that the next write may overwrite or leave behind. */
  view(): Uint8Array {
    return this.bytes.subarray(0, this.length);
  }

  /** What was written, as a copy. */
  copy(): Uint8Array {
    return new Uint8Array(this.view());
  }

  /** Makes room for `count` more bytes. */
  reserve(count: number): void {
    const want = this.length + count;
    if (want <= this.bytes.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(want, this.bytes.length * 2));
    this.bytes.copy(grown, 0, 0, this.length);
    this.bytes = grown;
  }

  byte(value: number): void {
    this.reserve(1);
    this.bytes[this.length++] = value;
  }

  append(bytes: Uint8Array): void {
    this.reserve(bytes.byteLength);
    this.bytes.set(bytes, this.length);
    this.length += bytes.byteLength;
  }

  text(text: string): void {
    this.append(Buffer.from(text, "utf8"));
  }

  u32(value: number): void {
    this.reserve(4);
    this.length = this.bytes.writeUInt32LE(value, this.length);
  }

  u64(value: bigint): void {
    this.reserve(8);
    this.length = this.bytes.writeBigUInt64LE(BigInt.asUintN(64, value), this.length);
  }

  /** Unsigned LEB128 of a whole number below 2^53. */
  varint(value: number): void {
    this.reserve(10);
    let rest = value;
    while (rest >= 0x80) {
      this.bytes[this.length++] = (rest % 0x80) | 0x80;
      rest = Math.floor(rest / 0x80);
    }
    this.bytes[this.length++] = rest;
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
      this.bytes[this.length++] = Number(rest & 0x7fn) | 0x80;
      rest >>= 7n;
    }
    this.bytes[this.length++] = Number(rest);
  }
}
