import type { Block, BytesColumn } from "@skald/model";
import type { LogPlan } from "../../plan/plan.js";
import type { RowLabels } from "../../plan/result.js";
import type { ColumnNeeds, RunSelection, StreamLabels } from "../metric/metric-scan.js";
import { LogQueryScan } from "./log-scan-run.js";

/**
 * Keeps the best rows of a log query: the first `limit` in its direction. Blocks may come in any order, but a reader
 * that gives the best first can stop early.
 */
export interface LogScan {
  readonly needs: ColumnNeeds;
  /**
   * The time (ns since the epoch) of the worst row kept once there are enough rows: a block all of whose rows are
   * worse cannot change the answer. undefined while every row may still count.
   */
  worstTime(): bigint | undefined;
  /**
   * Adds the selected rows that lie in the time range of the plan. Of rows with equal timestamps the ones with a
   * smaller `sequence` come first (a number below 2^53 of source and block), then the ones with a smaller row number.
   */
  addBlock(block: Block, streams: StreamLabels, selection: RunSelection, sequence: number): void;
  /** What was kept; the scan cannot be used afterwards. */
  finish(): LogPartial;
}

/** The best rows of one scan, best first: plain data. */
export interface LogPartial {
  readonly rowCount: number;
  /** ns since the epoch */
  readonly timestamps: BigInt64Array;
  readonly sequence: Float64Array;
  /** Row number within its block. */
  readonly row: Uint32Array;
  /** Index into `labels`. */
  readonly labelSet: Uint32Array;
  readonly lines: BytesColumn;
  readonly labels: readonly RowLabels[];
  /** True when rows worse than the last one were left out. */
  readonly truncated: boolean;
}

/** Starts a scan of a log query: compiles its pipeline. Throws invalid_argument when a stage cannot be built. */
export function startLogScan(plan: LogPlan): LogScan {
  return new LogQueryScan(plan);
}
