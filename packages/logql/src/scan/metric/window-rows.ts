import type { Block } from "@skald/model";
import type { BucketCursor } from "../../plan/window-grid.js";
import { forEachStretch, type RunSelection } from "../block-selection.js";

/** The rows of a block that lie in a window of the leaf, ascending, each with its bucket. Reused block by block. */
export class WindowRows {
  count = 0;
  rows = new Uint32Array(0);
  /** By row number, not by position. */
  bucketOfRow = new Uint32Array(0);

  /** Selects the rows of the runs without the excluded ones. Reads timestamps only of runs that cross an edge. */
  select(block: Block, selection: RunSelection, cursor: BucketCursor): void {
    this.count = 0;
    if (this.rows.length < block.rowCount) {
      this.rows = new Uint32Array(block.rowCount);
      this.bucketOfRow = new Uint32Array(block.rowCount);
    }
    forEachStretch(block, selection, (run, from, to) => {
      const { minTime, maxTime } = block.runs;
      if (cursor.covers(minTime[run]!, maxTime[run]!)) {
        if (cursor.bucket >= 0) this.#addAll(from, to, cursor.bucket);
      } else {
        this.#addByTime(from, to, block.timestamps(), cursor);
      }
    });
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
