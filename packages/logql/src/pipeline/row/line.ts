import type { BytesColumn } from "@skald/model";
import { readText } from "./bytes.js";

/** The current line of the current row: a range of the block until a stage replaces it. */
export class LineSource {
  bytes: Uint8Array = new Uint8Array(0);
  start = 0;
  end = 0;
  #text: string | undefined;

  setRow(column: BytesColumn, row: number): void {
    this.bytes = column.bytes;
    this.start = column.offsets[row]!;
    this.end = column.offsets[row + 1]!;
    this.#text = undefined;
  }

  /** For rows whose line nobody looks at. */
  clear(): void {
    this.replace(this.bytes, 0, 0);
  }

  replace(bytes: Uint8Array, start: number, end: number): void {
    this.bytes = bytes;
    this.start = start;
    this.end = end;
    this.#text = undefined;
  }

  get text(): string {
    this.#text ??= readText(this.bytes, this.start, this.end);
    return this.#text;
  }
}
