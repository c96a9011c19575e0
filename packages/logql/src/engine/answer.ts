import { compareLabels, formatLabels, invalidArgument, type Labels } from "@skald/model";
import type { Budget } from "../plan/budget.js";
import { partialSeriesWarning, tooManySeries } from "../plan/limits.js";
import type { MetricPlan, PlanNode } from "../plan/plan.js";
import type { MatrixSeries, QueryResult, SeriesMatrix, VectorSample } from "../plan/result.js";

/**
 * The answer of a plan whose expression gave these series: sorted, each once, without empty series, within the limit.
 * Throws invalid_argument when two samples of one series stand at a point, or there are too many series.
 */
export function resultOfMatrix(
  plan: MetricPlan,
  evaluated: SeriesMatrix,
  budget: Budget,
): QueryResult {
  const { points, instant, limits } = plan;
  const matrix = mayRepeat(plan.root) ? joinEqualSeries(evaluated, budget) : evaluated;
  const order = matrix.labels.flatMap((_, s) => (matrix.present[s]!.includes(1) ? [s] : []));
  if (!instant || !isSorted(plan.root)) {
    order.sort((a, b) => {
      budget.work(1);
      return compareLabels(matrix.labels[a]!, matrix.labels[b]!);
    });
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

/** True when series of an expression may be equal: label_replace makes them so, and `or` takes from both sides. */
function mayRepeat(node: PlanNode): boolean {
  switch (node.kind) {
    case "label_replace":
      return true;
    case "vector_aggregation":
      return mayRepeat(node.inner);
    case "binary":
      return node.op === "or" || mayRepeat(node.left) || mayRepeat(node.right);
    case "leaf":
    case "literal":
    case "vector":
      return false;
  }
}

/** Makes one series of those with equal labels. Throws invalid_argument where two of them have a sample. */
function joinEqualSeries(input: SeriesMatrix, budget: Budget): SeriesMatrix {
  const { pointCount } = input;
  const rows = new Map<string, number>();
  const labels: Labels[] = [];
  const values: Float64Array[] = [];
  const present: Uint8Array[] = [];
  input.labels.forEach((set, s) => {
    budget.work(1 + set.names.length + pointCount);
    const text = formatLabels(set);
    const row = rows.get(text);
    if (row === undefined) {
      rows.set(text, labels.push(set) - 1);
      values.push((input.values[s] as Float64Array).slice());
      present.push((input.present[s] as Uint8Array).slice());
      return;
    }
    for (let p = 0; p < pointCount; p++) {
      if (input.present[s]![p] === 0) continue;
      if (present[row]![p] === 1) throw duplicateSeries(text);
      values[row]![p] = input.values[s]![p] as number;
      present[row]![p] = 1;
    }
  });
  return { pointCount, labels, values, present };
}

function duplicateSeries(text: string): Error {
  const shown = text.length > shownCharsMax ? `${text.slice(0, shownCharsMax)}...` : text;
  return invalidArgument(
    `label_replace gives duplicate series ${shown}; keep the replaced label sets distinct or aggregate them`,
  );
}

const shownCharsMax = 1000;

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
