import type { Block, Labels } from "@skald/model";
import type { LeafMode, LeafPlan } from "../../plan/plan.js";
import { LeafScan } from "./leaf-scan.js";

/**
 * Labels of the streams of one source by stream number. Its identity stands for the source: give the same function
 * for all blocks of a source, and another for another source.
 */
export type StreamLabels = (stream: number) => Labels;

/** Which rows of a block a scan may use: the rows of some runs, without a few. */
export interface RunSelection {
  /** Numbers of the runs, ascending. */
  readonly runs: Uint32Array;
  /** Rows to leave out (copies in another source, deleted rows), ascending. */
  readonly excluded?: Uint32Array;
}

/** One run of a block's header: what `addRun` may count without a column. */
export interface RunHeader {
  readonly stream: number;
  readonly rows: number;
  /** ns since baseNs, both inclusive */
  readonly minTime: number;
  readonly maxTime: number;
  readonly lineBytes: number;
}

/** What is known of a block before any column is read. */
export interface BlockHeader {
  /** ns since the epoch */
  readonly baseNs: bigint;
  readonly metadataNames: readonly string[];
}

/** The columns that `addBlock` may ask for, so that a reader can fetch them before. */
export interface ColumnNeeds {
  readonly lines: boolean;
  /** true: all; else the names of interest, which a block may lack. */
  readonly metadata: true | readonly string[];
  readonly timestamps: boolean;
}

/**
 * Accumulates the rows of one leaf, in memory bounded by the plan. Blocks and sources may come in any order; of rows
 * with equal timestamps first_over_time takes the one added first, last_over_time the one added last. Throws
 * invalid_argument when the rows break a limit of the plan or end in `__error__`.
 */
export interface MetricScan {
  readonly needs: ColumnNeeds;
  /**
   * Counts all rows of a run from its header. False when that cannot be done: the run must then be in a selection
   * given to `addBlock`. A run of which rows are excluded must not be offered.
   */
  addRun(streams: StreamLabels, block: BlockHeader, run: RunHeader): boolean;
  /** Adds the selected rows that lie in a window and in the leaf's time range. The caller selects streams. */
  addBlock(block: Block, streams: StreamLabels, selection: RunSelection): void;
  /** What was accumulated; the scan cannot be used afterwards. */
  finish(): MetricPartial;
}

/**
 * What one scan accumulated: plain data for a structured clone (`transferablesOf` lists its buffers). Series s has
 * entries `start[s] .. start[s+1]) of the columns: in mode `samples` one per row, else one per bucket of time that
 * has rows (see window-grid.ts). Buckets ascend within a series, and samples by (bucket, time).
 */
export interface MetricPartial {
  readonly mode: LeafMode;
  readonly labels: readonly Labels[];
  /** length: series + 1 */
  readonly start: Uint32Array;
  readonly bucket: Uint32Array;
  /** Rows of the bucket; empty in mode `samples`. */
  readonly count: Float64Array;
  /** bytes, sum, least, greatest, mean, or the value; empty in mode `count`. */
  readonly value: Float64Array;
  /** Modes first, last and samples: ns since `lastWindowEnd`; moments: sum of squared differences from the mean. */
  readonly extra: Float64Array;
}

/** The buffers of a partial, to be moved to another thread instead of copied. */
export function transferablesOf(partial: MetricPartial): ArrayBuffer[] {
  const columns = [partial.start, partial.bucket, partial.count, partial.value, partial.extra];
  return columns.map((column) => column.buffer as ArrayBuffer);
}

/** Starts a scan of one leaf: compiles its pipeline. Throws invalid_argument when a stage cannot be built. */
export function startMetricScan(leaf: LeafPlan): MetricScan {
  return new LeafScan(leaf);
}
