import { compareLabels, floorDiv, formatLabels } from "@skald/model";
import { partialSeriesWarning, tooManySeries } from "../scan/metric/series.js";
import type { MetricExpr } from "../syntax/ast.js";
import type { QueryLimits, QueryParams } from "./plan.js";
import type { MatrixResult, MatrixSeries } from "./result.js";

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
