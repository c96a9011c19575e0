import type { RowSelection } from "@skald/kernels";
import type { Block } from "@skald/model";
import type { LogPlan } from "../../plan/plan.js";
import { forEachStretch, type RunSelection } from "../block-selection.js";

type SelectedPlan = Pick<LogPlan, "fromNs" | "toNs" | "direction">;

/** Chooses the rows of a block that a log query has to look at. */
export class LogSelection {
  readonly #plan: SelectedPlan;
  /** Given when every row survives the pipeline: more rows than this are never needed of a block. */
  readonly #limit: number | undefined;
  #rows = new Uint32Array(0);

  constructor(plan: SelectedPlan, limit: number | undefined) {
    this.#plan = plan;
    this.#limit = limit;
  }

  /** `worst`: rows worse than this time (ns since the epoch) cannot change the answer. */
  select(block: Block, selection: RunSelection, worst: bigint | undefined): Readonly<RowSelection> {
    if (this.#rows.length < block.rowCount) this.#rows = new Uint32Array(block.rowCount);
    const from = Number(this.#plan.fromNs - block.baseNs);
    const to = Number(this.#plan.toNs - block.baseNs) - 1;
    const count = this.#within(block, selection, from, to);
    const bound = worst === undefined ? undefined : Number(worst - block.baseNs);
    return { rows: this.#rows, count: this.#onlyBetter(block, count, bound) };
  }

  /** Collects the rows with from <= time <= to. */
  #within(block: Block, selection: RunSelection, from: number, to: number): number {
    const rows = this.#rows;
    const { minTime, maxTime } = block.runs;
    let count = 0;
    forEachStretch(block, selection, (run, first, end) => {
      if (maxTime[run]! < from || minTime[run]! > to) return;
      const isInside = minTime[run]! >= from && maxTime[run]! <= to;
      count = isInside
        ? addAll(rows, count, first, end)
        : addBetween(rows, count, { first, end, times: block.timestamps(), from, to });
    });
    return count;
  }

  /** Drops rows worse than the bound, and of a pipeline that keeps every row those that others push out. */
  #onlyBetter(block: Block, count: number, bound: number | undefined): number {
    const better = bound === undefined ? count : this.#upTo(block, count, bound);
    const limit = this.#limit;
    if (limit === undefined || better <= limit) return better;
    return this.#upTo(block, better, this.#timeOfRank(block, better, limit));
  }

  /** Keeps the rows that are not worse than a time. */
  #upTo(block: Block, count: number, bound: number): number {
    const backward = this.#plan.direction === "backward";
    const times = block.timestamps();
    const rows = this.#rows;
    let kept = 0;
    for (let i = 0; i < count; i++) {
      const row = rows[i]!;
      const time = times[row]!;
      if (backward ? time >= bound : time <= bound) rows[kept++] = row;
    }
    return kept;
  }

  /** The time of the best row but `rank - 1`. */
  #timeOfRank(block: Block, count: number, rank: number): number {
    const all = block.timestamps();
    const times = new Float64Array(count);
    for (let i = 0; i < count; i++) times[i] = all[this.#rows[i]!]!;
    times.sort();
    return times[this.#plan.direction === "backward" ? count - rank : rank - 1]!;
  }
}

/** Adds the rows first .. end - 1 behind `count` others; gives their number with these. */
function addAll(rows: Uint32Array, count: number, first: number, end: number): number {
  // A loop over what a closure holds is several times as slow.
  let at = count;
  for (let row = first; row < end; row++) rows[at++] = row;
  return at;
}

interface TimedRows {
  readonly first: number;
  readonly end: number;
  readonly times: Float64Array;
  readonly from: number;
  readonly to: number;
}

/** Adds those of them with from <= time <= to. */
function addBetween(
  rows: Uint32Array,
  count: number,
  { first, end, times, from, to }: TimedRows,
): number {
  let at = count;
  for (let row = first; row < end; row++) {
    if (times[row]! >= from && times[row]! <= to) rows[at++] = row;
  }
  return at;
}
