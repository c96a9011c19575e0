import { grown } from "@skald/kernels";
import { type BytesColumn, paddingBytes } from "@skald/model";
import type { LineSource } from "./line.js";

/** The lines of the surviving rows, written one behind the other. */
export class LineBuilder {
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
      this.#bytes = grown(this.#bytes, Math.max(this.#bytes.length * 2, stop + paddingBytes));
    }
    if (this.#count + 1 === this.#offsets.length) {
      this.#offsets = grown(this.#offsets, this.#offsets.length * 2);
    }
    this.#bytes.set(bytes.subarray(start, end), at);
    this.#offsets[++this.#count] = stop;
  }

  /** Valid until the next `begin`. */
  finish(): BytesColumn {
    return { bytes: this.#bytes, offsets: this.#offsets.subarray(0, this.#count + 1) };
  }
}
