import type { BytesColumn, Labels } from "@skald/model";
import type { Points } from "./plan.js";

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
  readonly lines: BytesColumn;
  /** Label sets, each with its labels by origin; they may hold empty values. */
  readonly labels: readonly RowLabels[];
  readonly warnings: readonly string[];
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
