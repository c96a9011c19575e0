/** Writes the few forms of protobuf that a push consists of. */
export class Writer {
  #bytes = Buffer.allocUnsafe(256);
  #length = 0;

  bytes() {
    return this.#bytes.subarray(0, this.#length);
  }

  text(field, value) {
    const size = Buffer.byteLength(value);
    this.#head(field, size);
    this.#length += this.#bytes.write(value, this.#length);
  }

  message(field, message) {
    const value = message.bytes();
    this.#head(field, value.length);
    value.copy(this.#bytes, this.#length);
    this.#length += value.length;
  }

  number(field, value) {
    this.#grow(20);
    this.#varint(field << 3);
    this.#varint(Number(value));
  }

  #head(field, size) {
    this.#grow(size + 20);
    this.#varint((field << 3) | 2);
    this.#varint(size);
  }

  #varint(value) {
    let rest = value;
    for (; rest > 127; rest = Math.floor(rest / 128))
      this.#bytes[this.#length++] = (rest % 128) | 128;
    this.#bytes[this.#length++] = rest;
  }

  #grow(more) {
    if (this.#length + more <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafe(2 * (this.#length + more));
    this.#bytes.copy(grown, 0, 0, this.#length);
    this.#bytes = grown;
  }
}
