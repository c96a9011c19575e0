import { compareLabels, floorDiv, fnv1a32, formatLabels } from "@skald/model";
import type { LogPartial } from "../scan/log/log-scan.js";
import type { MetricExpr } from "../syntax/ast.js";
import { partialSeriesWarning, type QueryLimits, tooManySeries } from "./limits.js";
import type { LeafPlan, LogPlan, QueryParams, Shard } from "./plan.js";
import type { MatrixResult, MatrixSeries } from "./result.js";

/**
 * How a query is cut into parts that are scanned on their own, in other threads or processes.
 *
 * Partials of any division of the rows merge into what one scan gives, whatever the aggregation: sums, extremes,
 * moments and samples all combine. So every leaf and every log query may be split by time and sharded by stream, and
 * only the cost decides; partials of mode `samples` are as big as the rows, so cutting them finely does not pay.
 * What comes behind the leaves (vector aggregation, matching) is never split, only cut by points (`splitPoints`).
 */
export interface SplitOptions {
  /** Parts end at multiples of this since the epoch; 0n: not split by time. */
  readonly intervalNs: bigint;
  /** Number of shards of each part; 1: not sharded. */
  readonly shards: number;
}

/** Cuts a leaf. Give the partials of all parts, in this order, to `mergeMetricPartials` of the whole leaf. */
export function splitLeaf(leaf: LeafPlan, options: SplitOptions): LeafPlan[] {
  return rangesOf(leaf.fromNs, leaf.toNs, options.intervalNs).flatMap(([fromNs, toNs]) =>
    shardsOf(leaf, options.shards).map((shard) => ({ ...leaf, ...shard, fromNs, toNs })),
  );
}

/**
 * Cuts a log query into rounds, best rows first: the shards of a round may run at once, and further rounds are not
 * needed once `hasAllRows` of the partials so far.
 */
export function splitLogPlan(plan: LogPlan, options: SplitOptions): LogPlan[][] {
  const ranges = rangesOf(plan.fromNs, plan.toNs, options.intervalNs);
  if (plan.direction === "backward") ranges.reverse();
  return ranges.map(([fromNs, toNs]) =>
    shardsOf(plan, options.shards).map((shard) => ({ ...plan, ...shard, fromNs, toNs })),
  );
}

/** True when the rounds of a log query scanned so far hold all rows of the answer. */
export function hasAllRows(plan: LogPlan, partials: readonly LogPartial[]): boolean {
  const rows = partials.reduce((total, { rowCount }) => total + rowCount, 0);
  return rows >= plan.limit;
}

/** True for the streams of a shard, by canonical label text; without a shard for all. */
export function isInShard(shard: Shard | undefined, streamText: string): boolean {
  return shard === undefined || fnv1a32(streamText) % shard.count === shard.index;
}

/** The range cut at multiples of the interval; both ends as they are. */
function rangesOf(from: bigint, to: bigint, interval: bigint): (readonly [bigint, bigint])[] {
  if (interval <= 0n) return [[from, to]];
  const ranges: (readonly [bigint, bigint])[] = [];
  let start = from;
  while (start < to || ranges.length === 0) {
    const edge = (floorDiv(start, interval) + 1n) * interval;
    const end = edge < to ? edge : to;
    ranges.push([start, end]);
    start = end;
  }
  return ranges;
}

function shardsOf(part: { readonly shard?: Shard }, count: number): { shard?: Shard }[] {
  if (count <= 1 || part.shard !== undefined) return [{}];
  return Array.from({ length: count }, (_, index) => ({ shard: { index, count } }));
}

/**
 * Cuts a range query into queries over some of its points each, for a cache of results: every point of a metric
 * query depends on its own windows alone. Parts hold the points between two multiples of the interval.
 */
export function splitPoints(params: QueryParams, intervalNs: bigint): QueryParams[] {
  const { startNs, endNs, stepNs } = params;
  if (stepNs === 0n || intervalNs <= 0n) return [params];
  const parts: QueryParams[] = [];
  for (let start = startNs; start <= endNs; ) {
    const edge = (floorDiv(start, intervalNs) + 1n) * intervalNs;
    // The last point before the edge.
    const points = (edge - 1n - start) / stepNs;
    const last = start + points * stepNs;
    const end = last < endNs ? last : endNs;
    parts.push({ ...params, startNs: start, endNs: end });
    start = last + stepNs;
  }
  return parts;
}

/** The result of a query from those of its parts by `splitPoints`, in order. Throws when the series are too many. */
export function joinMatrices(
  params: QueryParams,
  parts: readonly MatrixResult[],
  limits: QueryLimits,
): MatrixResult {
  const { startNs, stepNs } = params;
  const byText = new Map<string, { part: number; series: MatrixSeries }[]>();
  const shifts = parts.map(({ points }) => Number((points.startNs - startNs) / stepNs));
  parts.forEach((result, part) => {
    for (const series of result.series) {
      const text = formatLabels(series.labels);
      const pieces = byText.get(text);
      if (pieces === undefined) byText.set(text, [{ part, series }]);
      else pieces.push({ part, series });
    }
  });
  const series = [...byText.values()].map((pieces) => joinPieces(pieces, shifts));
  series.sort((a, b) => compareLabels(a.labels, b.labels));
  const warnings = new Set(parts.flatMap((part) => part.warnings));
  if (series.length > limits.maxSeries) {
    if (limits.onTooManySeries === "fail") throw tooManySeries(limits.maxSeries);
    series.length = limits.maxSeries;
    warnings.add(partialSeriesWarning(limits.maxSeries));
  }
  const count = Number((params.endNs - startNs) / stepNs) + 1;
  return { kind: "matrix", points: { startNs, stepNs, count }, series, warnings: [...warnings] };
}

function joinPieces(
  pieces: readonly { readonly part: number; readonly series: MatrixSeries }[],
  shifts: readonly number[],
): MatrixSeries {
  return {
    labels: pieces[0]!.series.labels,
    at: Uint32Array.from(
      pieces.flatMap(({ part, series }) => Array.from(series.at, (point) => point + shifts[part]!)),
    ),
    values: Float64Array.from(pieces.flatMap(({ series }) => [...series.values])),
  };
}

/** The longest range of a metric query: parts by points should not be shorter, or rows are read several times. */
export function longestRangeNs(expr: MetricExpr): bigint {
  switch (expr.kind) {
    case "range_aggregation":
      return expr.rangeNs;
    case "vector_aggregation":
    case "label_replace":
      return longestRangeNs(expr.inner);
    case "binary": {
      const left = longestRangeNs(expr.left);
      const right = longestRangeNs(expr.right);
      if (left > right) return left;
      return right;
    }
    case "literal":
    case "vector":
      return 0n;
  }
}
