import { emptyLabels } from "@skald/model";
import type { BinaryNode, MetricPlan, PlanNode } from "../plan/plan.js";
import type { QueryResult, SeriesMatrix } from "../plan/result.js";
import { calculateLiterals } from "../syntax/calculate.js";
import { aggregateVector } from "./aggregate.js";
import { resultOfMatrix } from "./answer.js";
import { combineVectors, combineWithLiteral } from "./binary/binary.js";
import { replaceLabels } from "./label-replace.js";

/**
 * The result of a metric plan from what `mergeMetricPartials` gave for its leaves, by leaf id. Throws invalid_argument when series cannot
 * be matched or are too many.
 */
export function evaluate(plan: MetricPlan, leaves: LeafSeries): QueryResult {
  const { points, instant } = plan;
  const value = evaluateNode(plan.root, { leaves, pointCount: points.count });
  if (typeof value !== "number") return resultOfMatrix(plan, value);
  if (instant) return { kind: "scalar", atNs: points.startNs, value, warnings: [] };
  return resultOfMatrix(plan, constantSeries(value, points.count));
}

/** By leaf id, the series of each function of the leaf. */
type LeafSeries = ReadonlyMap<number, readonly SeriesMatrix[]>;

interface Context {
  readonly leaves: LeafSeries;
  readonly pointCount: number;
}

/** Series, or the number of an expression of literals. */
function evaluateNode(node: PlanNode, context: Context): SeriesMatrix | number {
  switch (node.kind) {
    case "literal":
      return node.value;
    case "vector":
      return constantSeries(node.value, context.pointCount);
    case "leaf": {
      const series = context.leaves.get(node.leaf)?.[node.function];
      if (series === undefined) throw new Error(`leaf ${node.leaf} was not scanned`);
      return series;
    }
    case "vector_aggregation":
      return aggregateVector(node, evaluateSeries(node.inner, context));
    case "label_replace":
      return replaceLabels(node, evaluateSeries(node.inner, context));
    case "binary":
      return evaluateBinary(node, context);
  }
}

function evaluateSeries(node: PlanNode, context: Context): SeriesMatrix {
  const value = evaluateNode(node, context);
  return typeof value === "number" ? constantSeries(value, context.pointCount) : value;
}

function evaluateBinary(node: BinaryNode, context: Context): SeriesMatrix | number {
  const left = evaluateNode(node.left, context);
  const right = evaluateNode(node.right, context);
  if (typeof left === "number") {
    if (typeof right === "number") return calculateLiterals(node.op, left, right);
    return combineWithLiteral(node, right, left, "left");
  }
  if (typeof right === "number") return combineWithLiteral(node, left, right, "right");
  return combineVectors(node, left, right);
}

/** One series without labels that has the value at every point. */
function constantSeries(value: number, pointCount: number): SeriesMatrix {
  return {
    pointCount,
    labels: [emptyLabels],
    values: [new Float64Array(pointCount).fill(value)],
    present: [new Uint8Array(pointCount).fill(1)],
  };
}
