import { type Block, fnv1a32, formatLabels, type Labels } from "@skald/model";
import type { StreamLabels } from "./block-selection.js";

/**
 * Orders the streams of rows of equal time: by a hash of their label text, so that the order depends on nothing but the
 * data, wherever rows are stored. A number below 2^53.
 */
export function streamKey(labels: Labels): number {
  const text = formatLabels(labels);
  return fnv1a32(text) * 2 ** 21 + (fnv1a32("#", text) >>> 11);
}

/** The keys of the streams of rows, block by block; each is made once. */
export class StreamKeys {
  #source: StreamLabels | undefined;
  #keys = new Map<number, number>();
  #block: Block | undefined;
  #run = 0;
  #key = Number.NaN;

  /** Begins with the rows of a block. */
  start(block: Block, streams: StreamLabels): void {
    if (streams !== this.#source) this.#keys = new Map();
    this.#source = streams;
    this.#block = block;
    this.#run = 0;
    this.#key = Number.NaN;
  }

  /** The key of the stream of a row; rows are asked for in ascending order. */
  ofRow(row: number): number {
    const { rowStart } = this.#block!.runs;
    if (row < rowStart[this.#run + 1]! && !Number.isNaN(this.#key)) return this.#key;
    while (row >= rowStart[this.#run + 1]!) this.#run++;
    const stream = this.#block!.runs.stream[this.#run]!;
    let key = this.#keys.get(stream);
    if (key === undefined) {
      key = streamKey(this.#source!(stream));
      this.#keys.set(stream, key);
    }
    this.#key = key;
    return key;
  }
}
