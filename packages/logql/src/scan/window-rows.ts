import type { Block } from "@skald/model";
import type { BucketCursor } from "../plan/window-grid.js";
import { forEachSetRow, forEachStretch, type RunSelection } from "./block-selection.js";

/** The rows of a block that lie in a window of the leaf, ascending, each with its bucket. Reused block by block. */
export class WindowRows {
  count = 0;
  rows = new Uint32Array(0);
  /** By row number, not by position. */
  bucketOfRow = new Uint32Array(0);

  /** Selects the rows of the runs without the excluded ones. Reads timestamps only of runs that cross an edge. */
  select(block: Block, selection: RunSelection, cursor: BucketCursor): void {
    this.#reset(block);
    forEachStretch(block, selection, (run, from, to) => {
      const { minTime, maxTime } = block.runs;
      if (cursor.covers(minTime[run]!, maxTime[run]!)) {
        if (cursor.bucket >= 0) this.#addAll(from, to, cursor.bucket);
      } else {
        this.#addByTime(from, to, block.timestamps(), cursor);
      }
    });
  }

  /** The same, of the rows whose bit is set in `words`: other rows cannot pass. */
  selectSome(
    block: Block,
    selection: RunSelection,
    cursor: BucketCursor,
    words: Uint32Array,
  ): void {
    this.#reset(block);
    const { rows, bucketOfRow } = this;
    let times: Float64Array | undefined;
    const add = (row: number) => {
      if (times !== undefined) {
        const time = times[row]!;
        if (time < cursor.low || time >= cursor.high) cursor.seek(time);
        if (cursor.bucket < 0) return;
      }
      bucketOfRow[row] = cursor.bucket;
      rows[this.count++] = row;
    };
    forEachStretch(block, selection, (run, from, to) => {
      const { minTime, maxTime } = block.runs;
      const isInOne = cursor.covers(minTime[run]!, maxTime[run]!);
      if (isInOne && cursor.bucket < 0) return;
      times = isInOne || !hasSetRow(words, from, to) ? undefined : block.timestamps();
      if (isInOne || times !== undefined) forEachSetRow(words, from, to, add);
    });
  }

  #reset({ rowCount }: Block): void {
    this.count = 0;
    if (this.rows.length >= rowCount) return;
    this.rows = new Uint32Array(rowCount);
    this.bucketOfRow = new Uint32Array(rowCount);
  }

  #addAll(from: number, to: number, bucket: number): void {
    let { count } = this;
    for (let row = from; row < to; row++) this.rows[count++] = row;
    this.bucketOfRow.fill(bucket, from, to);
    this.count = count;
  }

  #addByTime(from: number, to: number, times: Float64Array, cursor: BucketCursor): void {
    const { rows, bucketOfRow } = this;
    let { count } = this;
    let { bucket, low, high } = cursor;
    for (let row = from; row < to; row++) {
      const time = times[row]!;
      if (time < low || time >= high) {
        cursor.seek(time);
        ({ bucket, low, high } = cursor);
      }
      if (bucket < 0) continue;
      rows[count++] = row;
      bucketOfRow[row] = bucket;
    }
    this.count = count;
  }
}

/** Whether the bit of any row of `from .. to)` is set. */
function hasSetRow(words: Uint32Array, from: number, to: number): boolean {
  for (let at = from >> 5; at * 32 < to; at++) {
    let word = words[at]!;
    if (at === from >> 5) word &= -1 << (from & 31);
    if (to - at * 32 < 32) word &= 2 ** (to - at * 32) - 1;
    if (word !== 0) return true;
  }
  return false;
}
