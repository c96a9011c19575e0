import { invalidArgument } from "@skald/model";

/** Bounds of one query; defaults in `defaultQueryLimits`. */
export interface QueryLimits {
  /** Series in the result of a metric query. */
  readonly maxSeries: number;
  /** Too many series: `fail` refuses the query, `truncate` answers the first ones with a warning. */
  readonly onTooManySeries: "fail" | "truncate";
  /** Series of a range aggregation whose series are not those of the result. */
  readonly maxInnerSeries: number;
  /** Accumulators and samples that one scan, or one merged range aggregation, may hold (16 to 24 bytes each). */
  readonly maxCells: number;
}

export const defaultQueryLimits: QueryLimits = {
  maxSeries: 500,
  onTooManySeries: "fail",
  maxInnerSeries: 200_000,
  maxCells: 1 << 24,
};

/** The refusal of a query with more series than it may have. */
export function tooManySeries(limit: number): Error {
  return invalidArgument(
    `maximum number of series (${limit}) reached for a single query; consider reducing query cardinality by adding more specific stream selectors, reducing the time range, or aggregating results with functions like sum(), count() or topk()`,
  );
}

/** The warning of an answer that holds only the first series. */
export function partialSeriesWarning(limit: number): string {
  return `maximum number of series (${limit}) reached for a single query; returning partial results`;
}

/** The refusal of a query that would hold more than its plan allows. */
export function tooManyCells(limit: number): Error {
  return invalidArgument(
    `the query needs more than ${limit} samples in memory; narrow the time range or the selectors, raise the step, or aggregate by fewer labels`,
  );
}
