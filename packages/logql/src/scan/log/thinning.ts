import type { LogPlan } from "../../plan/plan.js";

/** Rows that a scan, or a merge of scans, holds for an interval at least, so that few of them say nothing of the next interval. */
const minHeldRows = 1000;

/**
 * Goes through the rows of a query with an interval, best first, and takes the first one, and then each that lies at least the
 * interval behind the last one taken.
 */
export class Thinning {
  /** Rows taken so far. */
  taken = 0;
  readonly #plan: LogPlan;
  /** Where the next row may lie: ns from the end of the range at which the rows begin, as are all distances. */
  #nextNs = 0n;

  constructor(plan: LogPlan) {
    this.#plan = plan;
  }

  /** True for a row that is taken. */
  takes(timeNs: bigint): boolean {
    const distanceNs = this.#distanceTo(timeNs);
    if (distanceNs < this.#nextNs) return false;
    this.#nextNs = distanceNs + this.#plan.intervalNs;
    this.taken++;
    return true;
  }

  /**
   * True for a row that is taken, or may be when more rows are known. These move the rows that are taken towards the beginning,
   * but the k-th stays k - 1 intervals away from it: a row is out of the question when a row was taken before it for each
   * interval that has begun.
   */
  mayTake(timeNs: bigint): boolean {
    if (this.takes(timeNs)) return true;
    const distanceNs = this.#distanceTo(timeNs);
    if (distanceNs === this.#nextNs - this.#plan.intervalNs) return false;
    return distanceNs / this.#plan.intervalNs >= BigInt(this.taken);
  }

  #distanceTo(timeNs: bigint): bigint {
    const { direction, fromNs, toNs } = this.#plan;
    return direction === "forward" ? timeNs - fromNs : toNs - 1n - timeNs;
  }
}

/**
 * Of rows in the order of the query, those that its interval may take. `isCut` when there may be more behind the last of them:
 * enough are taken, or more are too many to hold.
 */
export function siftRows(
  plan: LogPlan,
  rows: Uint32Array,
  timeOf: (row: number) => bigint,
): { readonly rows: Uint32Array; readonly isCut: boolean } {
  const most = Math.max(plan.limit, minHeldRows);
  const thinning = new Thinning(plan);
  let count = 0;
  const kept = new Uint32Array(Math.min(most, rows.length));
  for (const row of rows) {
    if (thinning.taken === plan.limit) break;
    if (!thinning.mayTake(timeOf(row))) continue;
    if (count === most) return { rows: kept, isCut: true };
    kept[count++] = row;
  }
  return { rows: kept.subarray(0, count), isCut: thinning.taken === plan.limit };
}
