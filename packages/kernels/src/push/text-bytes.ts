import { paddedCopy } from "../padding.js";

/** Texts written one behind the other as UTF-8 into a growing buffer. */
export class TextBytes {
  #bytes: Uint8Array;
  #length = 0;
  readonly #encoder = new TextEncoder();

  constructor(expectedBytes: number) {
    this.#bytes = new Uint8Array(expectedBytes);
  }

  get length(): number {
    return this.#length;
  }

  /** Appends a text and returns its length in bytes; a lone surrogate becomes U+FFFD. */
  add(text: string): number {
    const needed = this.#length + text.length * 3;
    if (needed > this.#bytes.length) this.#grow(needed);
    const { written } = this.#encoder.encodeInto(text, this.#bytes.subarray(this.#length));
    this.#length += written;
    return written;
  }

  finish(): Uint8Array {
    return paddedCopy(this.#bytes.subarray(0, this.#length));
  }

  #grow(needed: number): void {
    const longer = new Uint8Array(needed * 2);
    longer.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = longer;
  }
}
