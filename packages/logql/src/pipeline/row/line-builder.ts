import { type BytesColumn, paddingBytes } from "@skald/model";
import type { LineSource } from "./line.js";

/** The lines of the surviving rows, written one behind the other. */
export class LineOutput {
  #bytes = new Uint8Array(64 * 1024);
  #offsets = new Uint32Array(1025);
  #count = 0;

  begin(): void {
    this.#count = 0;
  }

  append({ bytes, start, end }: LineSource): void {
    const at = this.#offsets[this.#count]!;
    const stop = at + end - start;
    if (stop + paddingBytes > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(this.#bytes.length * 2, stop + paddingBytes));
      larger.set(this.#bytes.subarray(0, at));
      this.#bytes = larger;
    }
    if (this.#count + 1 === this.#offsets.length) {
      const larger = new Uint32Array(this.#offsets.length * 2);
      larger.set(this.#offsets);
      this.#offsets = larger;
    }
    this.#bytes.set(bytes.subarray(start, end), at);
    this.#offsets[++this.#count] = stop;
  }

  /** Valid until the next `begin`. */
  finish(): BytesColumn {
    return { bytes: this.#bytes, offsets: this.#offsets.subarray(0, this.#count + 1) };
  }
}
