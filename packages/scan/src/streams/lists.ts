/** Numbers of 32 bits, as many as come. */
export class NumberList {
  count = 0;
  #numbers = new Uint32Array(1024);

  push(number: number): void {
    if (this.count === this.#numbers.length) {
      const grown = new Uint32Array(2 * this.count);
      grown.set(this.#numbers);
      this.#numbers = grown;
    }
    this.#numbers[this.count++] = number;
  }

  take(): Uint32Array {
    return this.#numbers.slice(0, this.count);
  }
}

/** Bytes, as many as come. */
export class ByteList {
  count = 0;
  #bytes = new Uint8Array(4096);

  append(bytes: Uint8Array, from: number, to: number): void {
    const end = this.count + to - from;
    if (end > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(end, 2 * this.#bytes.length));
      grown.set(this.#bytes);
      this.#bytes = grown;
    }
    // Values are short: a call that copies would take longer.
    for (let i = from; i < to; i++) this.#bytes[this.count++] = bytes[i]!;
  }

  take(): Uint8Array {
    return this.#bytes.slice(0, this.count);
  }
}
