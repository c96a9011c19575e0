import { maxMetadataCells } from "../head/layout.js";
import type { MapRows } from "../segment/layout.js";
import type { MoreRows } from "./more-rows.js";
import type { SealBlock } from "./open-heads.js";
import type { RowRanges } from "./row-ranges.js";

/** Copies together what rows of one block to write have of metadata without columns, and bounds its distinct names. */
export class MoreGatherer {
  /** By name: the block that has it last, counted from one. */
  readonly #blockOf: Uint32Array;
  #block = 1;
  #used: number[] = [];

  constructor(nameCount: number) {
    this.#blockOf = new Uint32Array(nameCount);
  }

  /**
   * Takes notice of the names of rows `from .. to)` as far as they fit beside `rows` others, and returns how many rows those
   * are; the first row of a block always fits. Columns of all names of a block are to stay small.
   */
  note(more: MoreRows, from: number, to: number, rows: number): number {
    if (this.#blockOf.length === 0) return to - from;
    for (let row = from; row < to; row++) {
      const start = more.start[row]!;
      const end = more.start[row + 1]!;
      let added = 0;
      for (let pair = start; pair < end; pair++) {
        if (this.#blockOf[more.names[pair]!] !== this.#block) added++;
      }
      const rowsThen = rows + row - from + 1;
      const cells = rowsThen * (this.#used.length + added);
      if (rowsThen > 1 && cells > maxMetadataCells) return row - from;
      for (let pair = start; added > 0 && pair < end; pair++) this.#use(more.names[pair]!);
    }
    return to - from;
  }

  /** Ends the block: its pairs, of all rows in the ranges. */
  gather(blocks: readonly SealBlock[], ranges: RowRanges, rowCount: number): MapRows {
    const used = Uint32Array.from(this.#used).sort();
    this.#used = [];
    this.#block++;
    const pairStart = new Uint32Array(rowCount + 1);
    const counts = used.length === 0 ? { pairs: 0, bytes: 0 } : countOf(blocks, ranges);
    const names = new Uint32Array(counts.pairs);
    const valueLengths = new Uint32Array(counts.pairs);
    const values = new Uint8Array(counts.bytes);
    const more = { rowCount, pairStart, names, valueLengths, values, used: [...used] };
    if (counts.pairs === 0) return more;
    let row = 0;
    let at = 0;
    let valueAt = 0;
    for (let i = 0; i < ranges.count; i++) {
      const source = blocks[ranges.block[i]!]!.more;
      const first = source.start[ranges.from[i]!]!;
      const end = source.start[ranges.to[i]!]!;
      for (let r = ranges.from[i]!; r < ranges.to[i]!; r++) {
        pairStart[++row] = at + source.start[r + 1]! - first;
      }
      for (let pair = first; pair < end; pair++, at++) {
        names[at] = source.names[pair]!;
        valueLengths[at] = source.offsets[pair + 1]! - source.offsets[pair]!;
      }
      const bytes = source.bytes.subarray(source.offsets[first], source.offsets[end]);
      values.set(bytes, valueAt);
      valueAt += bytes.length;
    }
    return more;
  }

  #use(name: number): void {
    if (this.#blockOf[name] === this.#block) return;
    this.#blockOf[name] = this.#block;
    this.#used.push(name);
  }
}

function countOf(blocks: readonly SealBlock[], ranges: RowRanges) {
  let pairs = 0;
  let bytes = 0;
  for (let i = 0; i < ranges.count; i++) {
    const { start, offsets } = blocks[ranges.block[i]!]!.more;
    const from = start[ranges.from[i]!]!;
    const to = start[ranges.to[i]!]!;
    pairs += to - from;
    bytes += offsets[to]! - offsets[from]!;
  }
  return { pairs, bytes };
}
