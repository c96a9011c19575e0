import { grown } from "@skald/kernels";
import { type BytesColumn, paddingBytes } from "@skald/model";
import { tooMuchMemory } from "../../plan/budget.js";
import type { LineSource } from "./line.js";

/** Bytes that a query may hold when nobody says. */
export const defaultMaxLineBytes = 512 * 1024 * 1024;

/** Made lines of one block take at most this part: a scan keeps rows beside them, and each thread has a scan. */
const partOfBlock = 1 / 4;

/** Room for the first lines: most pipelines make none. */
const firstBytes = 64 * 1024;
const firstLines = 1024;

/** The lines of the surviving rows, written one behind the other. */
export class LineBuilder {
  #bytes = new Uint8Array(0);
  #offsets = new Uint32Array(1);
  #count = 0;
  readonly #maxBytes: number;

  constructor(maxBytes = defaultMaxLineBytes) {
    this.#maxBytes = maxBytes;
  }

  begin(): void {
    this.#count = 0;
  }

  /** Throws invalid_argument when the lines take too many bytes. */
  append({ bytes, start, end }: LineSource): void {
    const at = this.#offsets[this.#count]!;
    const stop = at + end - start;
    if (stop > this.#maxBytes * partOfBlock) throw tooMuchMemory(this.#maxBytes);
    if (stop + paddingBytes > this.#bytes.length) {
      this.#bytes = grown(
        this.#bytes,
        Math.max(firstBytes, this.#bytes.length * 2, stop + paddingBytes),
      );
    }
    if (this.#count + 1 === this.#offsets.length) {
      this.#offsets = grown(this.#offsets, Math.max(firstLines, this.#offsets.length * 2));
    }
    this.#bytes.set(bytes.subarray(start, end), at);
    this.#offsets[++this.#count] = stop;
  }

  /** Valid until the next `begin`. */
  finish(): BytesColumn {
    return { bytes: this.#bytes, offsets: this.#offsets.subarray(0, this.#count + 1) };
  }
}
