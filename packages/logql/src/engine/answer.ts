import { compareLabels } from "@skald/model";
import { partialSeriesWarning, tooManySeries } from "../plan/limits.js";
import type { MetricPlan, PlanNode } from "../plan/plan.js";
import type { MatrixSeries, QueryResult, SeriesMatrix, VectorSample } from "../plan/result.js";

/** The answer of a plan whose expression gave these series: sorted, without empty series, within the limit. */
export function resultOfMatrix(plan: MetricPlan, matrix: SeriesMatrix): QueryResult {
  const { points, instant, limits } = plan;
  const order = matrix.labels.flatMap((_, s) => (matrix.present[s]!.includes(1) ? [s] : []));
  if (!instant || !isSorted(plan.root)) {
    order.sort((a, b) => compareLabels(matrix.labels[a]!, matrix.labels[b]!));
  }
  const warnings: string[] = [];
  if (order.length > limits.maxSeries) {
    if (limits.onTooManySeries === "fail") throw tooManySeries(limits.maxSeries);
    order.length = limits.maxSeries;
    warnings.push(partialSeriesWarning(limits.maxSeries));
  }
  if (instant) {
    const samples = order.map((s) => sampleOf(matrix, s));
    return { kind: "vector", atNs: points.startNs, samples, warnings };
  }
  return { kind: "matrix", points, series: order.map((s) => seriesOf(matrix, s)), warnings };
}

/** True when sort or sort_desc occurs in an expression: an instant result then keeps the order of its evaluation. */
function isSorted(node: PlanNode): boolean {
  switch (node.kind) {
    case "vector_aggregation":
      return node.op === "sort" || node.op === "sort_desc" || isSorted(node.inner);
    case "label_replace":
      return isSorted(node.inner);
    case "binary":
      return isSorted(node.left) || isSorted(node.right);
    case "leaf":
    case "literal":
    case "vector":
      return false;
  }
}

function sampleOf(matrix: SeriesMatrix, series: number): VectorSample {
  return { labels: matrix.labels[series]!, value: matrix.values[series]![0] as number };
}

function seriesOf(matrix: SeriesMatrix, series: number): MatrixSeries {
  const present = matrix.present[series] as Uint8Array;
  const values = matrix.values[series] as Float64Array;
  const at: number[] = [];
  for (let p = 0; p < present.length; p++) if (present[p] === 1) at.push(p);
  return {
    labels: matrix.labels[series]!,
    at: Uint32Array.from(at),
    values: Float64Array.from(at, (p) => values[p] as number),
  };
}
