import type { BytesColumn, Labels, Matcher } from "@skald/model";
import type {
  BinaryExpr,
  Grouping,
  LabelReplace,
  LeafMode,
  LiteralExpr,
  LogExpr,
  RangeOp,
  Stage,
  Unwrap,
  VectorAggregation,
  VectorLiteral,
} from "../syntax/ast.js";
import type { QueryLimits } from "./budget.js";

/** What a request asks besides the query text. Times in ns since the epoch, durations in ns. */
export interface QueryParams {
  readonly startNs: bigint;
  readonly endNs: bigint;
  /** 0n for an instant query: one point at `endNs`. */
  readonly stepNs: bigint;
  /** Rows of a log query. */
  readonly limit: number;
  readonly direction: Direction;
  /** Log queries skip rows until this much after the last one returned; 0n for none. */
  readonly intervalNs: bigint;
  /** When the query was asked, ns since the epoch: `now` of its templates. Absent: `endNs`. */
  readonly nowNs?: bigint;
  /** Rows older than this are left out of every window; all rows count if not given. */
  readonly oldestNs?: bigint;
}

export type Direction = "forward" | "backward";

/** How a query is answered: plain data that survives a structured clone. */
export type Plan = LogPlan | MetricPlan;

/** Rows in the range [fromNs, toNs) of streams in the shard. */
export interface LogPlan {
  readonly kind: "log";
  readonly log: LogExpr;
  readonly fromNs: bigint;
  readonly toNs: bigint;
  readonly shard?: Shard;
  readonly limit: number;
  readonly direction: Direction;
  readonly intervalNs: bigint;
  /** `now` of templates, ns since the epoch. */
  readonly nowNs: bigint;
  /** Bytes that the rows of one scan may take; a default when absent. */
  readonly maxLineBytes?: number;
  /**
   * Bytes of lines behind which one scan ends, at a time of which it has all rows: its partial is truncated then, and another scan goes on
   * behind it. Absent: a scan goes as far as to the limit.
   */
  readonly scanBytes?: number;
}

/** Each leaf is scanned on its own; `evaluate` computes the result from what the leaves give. */
export interface MetricPlan {
  readonly kind: "metric";
  readonly root: PlanNode;
  readonly leaves: readonly LeafPlan[];
  readonly points: Points;
  readonly instant: boolean;
  readonly limits: QueryLimits;
}

/** The evaluation points `startNs + i * stepNs`, i < count; an instant query has one point and step 0. */
export interface Points {
  /** ns since the epoch */
  readonly startNs: bigint;
  readonly stepNs: bigint;
  readonly count: number;
}

/** A metric expression whose range aggregations, with what is pushed down into them, are leaves. */
export type PlanNode =
  | PlanLeaf
  | VectorAggregation<PlanNode>
  | BinaryExpr<PlanNode>
  | LabelReplace<PlanNode>
  | LiteralExpr
  | VectorLiteral;

/** The series of one function of a leaf, both by number. */
export interface PlanLeaf {
  readonly kind: "leaf";
  readonly leaf: number;
  readonly function: number;
}

/** What a range aggregation computes of the rows in each window. */
export interface RangeFunction {
  readonly op: RangeOp;
  /** of quantile_over_time */
  readonly parameter?: number;
}

/**
 * A scan of log rows for the range aggregations that look at the same rows in the same way. Rows in [fromNs, toNs) of
 * streams in the shard are counted: all that are in a window, or a part of them (see `splitLeaf`). `mode` is what is kept
 * of the rows, and enough for every function.
 */
export interface LeafPlan {
  readonly id: number;
  readonly matchers: readonly Matcher[];
  readonly stages: readonly Stage[];
  readonly unwrap?: Unwrap;
  readonly mode: LeafMode;
  readonly functions: readonly RangeFunction[];
  readonly windows: Windows;
  /** Labels of the result: the grouping of the range aggregation or of the vector aggregation pushed into it. */
  readonly grouping?: Grouping;
  /** Labels that are read of the result, where others only tell series apart: a hash stands for these. Absent: all are read. */
  readonly labelsRead?: readonly string[];
  /**
   * `needed`: parsers may skip what neither the grouping nor a stage uses, malformed lines included. `all`:
   * every label counts, because a malformed line must fail the query.
   */
  readonly extract: "needed" | "all";
  readonly fromNs: bigint;
  readonly toNs: bigint;
  readonly shard?: Shard;
  /** `now` of templates, ns since the epoch. */
  readonly nowNs: bigint;
  readonly maxSeries: number;
  readonly maxCells: number;
}

/** The windows of the points of a query: window i has the times [startNs + i * stepNs, startNs + i * stepNs + rangeNs). */
export interface Windows {
  /** ns since the epoch */
  readonly startNs: bigint;
  readonly stepNs: bigint;
  readonly count: number;
  readonly rangeNs: bigint;
}

/** A part of all streams: those whose hash is `index` modulo `count`; see `isInShard`. */
export interface Shard {
  readonly index: number;
  readonly count: number;
}

/** True when samples are kept with their times. */
export function wantsTimes({ functions }: LeafPlan): boolean {
  return functions.some(({ op }) => op === "rate_counter");
}

/** The exclusive end of the last window, ns since the epoch: what the times of a MetricPartial are counted from. */
export function lastWindowEnd({ startNs, stepNs, count, rangeNs }: Windows): bigint {
  return startNs + stepNs * BigInt(count - 1) + rangeNs;
}

/**
 * Series by points, the value that every metric expression is evaluated to: series s has at point p the sample
 * `values[s][p]` where `present[s][p]` is 1, and none where it is 0. Series come in no order. Label sets are distinct but
 * behind label_replace and `or`: there a sum merges those that are equal, and a result may have one sample at a point.
 */
export interface SeriesMatrix {
  readonly pointCount: number;
  readonly labels: readonly Labels[];
  readonly values: readonly Float64Array[];
  readonly present: readonly Uint8Array[];
}

/** What a metric query answers; plain data. Warnings are texts for the person who asked. */
export type QueryResult = MatrixResult | VectorResult | ScalarResult;

/** Series sorted by labels; each has at least one sample. */
export interface MatrixResult {
  readonly kind: "matrix";
  readonly points: Points;
  readonly series: readonly MatrixSeries[];
  readonly warnings: readonly string[];
}

/** Sample i is at the time `points.startNs + at[i] * points.stepNs`; `at` ascends. */
export interface MatrixSeries {
  readonly labels: Labels;
  readonly at: Uint32Array;
  readonly values: Float64Array;
}

/** Samples at one time, sorted by labels, or by value where the query sorts. */
export interface VectorResult {
  readonly kind: "vector";
  /** ns since the epoch */
  readonly atNs: bigint;
  readonly samples: readonly VectorSample[];
  readonly warnings: readonly string[];
}

export interface VectorSample {
  readonly labels: Labels;
  readonly value: number;
}

export interface ScalarResult {
  readonly kind: "scalar";
  /** ns since the epoch */
  readonly atNs: bigint;
  readonly value: number;
  readonly warnings: readonly string[];
}

/** Rows of a log query in the direction asked for, at most `limit`; plain data. */
export interface LogResult {
  readonly kind: "streams";
  readonly rowCount: number;
  /** ns since the epoch */
  readonly timestamps: BigInt64Array;
  /** Index into `labels`. */
  readonly labelSet: Uint32Array;
  readonly lines: FoundLines;
  /** Label sets, each with its labels by origin; they may hold empty values. */
  readonly labels: readonly RowLabels[];
  readonly warnings: readonly string[];
}

/** Lines where scans have put them, so that no merge copies them: line i is value `value[i]` of column `column[i]`. */
export interface FoundLines {
  readonly columns: readonly BytesColumn[];
  /** Index into `columns`. */
  readonly column: Uint32Array;
  readonly value: Uint32Array;
}

/** Rows or samples of an answer; a scalar has none. */
export function entriesOf(result: QueryResult | LogResult): number {
  switch (result.kind) {
    case "streams":
      return result.rowCount;
    case "vector":
      return result.samples.length;
    case "matrix":
      return result.series.reduce((sum, { at }) => sum + at.length, 0);
    case "scalar":
      return 0;
  }
}

/** What the rows of one result stream are keyed by, and the same labels by origin. */
export interface RowLabels {
  readonly labels: Labels;
  readonly categories: LabelCategories;
}

/** Labels by origin. */
export interface LabelCategories {
  readonly stream: Labels;
  readonly structuredMetadata: Labels;
  readonly parsed: Labels;
}
