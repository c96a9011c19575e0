import { emptyLabels } from "@skald/model";
import { Budget } from "../plan/budget.js";
import type { BinaryNode, MetricPlan, PlanNode } from "../plan/plan.js";
import type { QueryResult, SeriesMatrix } from "../plan/result.js";
import { calculateLiterals } from "../syntax/calculate.js";
import { aggregateVector } from "./aggregate/aggregate.js";
import { resultOfMatrix } from "./answer.js";
import { combineVectors, combineWithLiteral } from "./binary/binary.js";
import { replaceLabels } from "./label-replace.js";

/**
 * The result of a metric plan from what `mergeMetricPartials` gave for its leaves, by leaf id. Throws invalid_argument
 * when series cannot be matched, are too many or take too much memory, and `cancelled` when the budget says so.
 */
export function evaluate(
  plan: MetricPlan,
  leaves: LeafSeries,
  budget: Budget = new Budget(),
): QueryResult {
  const { points, instant } = plan;
  const value = evaluateNode(plan.root, { leaves, pointCount: points.count, budget });
  if (typeof value !== "number") return resultOfMatrix(plan, value, budget);
  if (instant) return { kind: "scalar", atNs: points.startNs, value, warnings: [] };
  return resultOfMatrix(plan, constantSeries(value, points.count), budget);
}

/** By leaf id, the series of each function of the leaf. */
type LeafSeries = ReadonlyMap<number, readonly SeriesMatrix[]>;

interface Context {
  readonly leaves: LeafSeries;
  readonly pointCount: number;
  readonly budget: Budget;
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
      return consume(
        context,
        () => evaluateSeries(node.inner, context),
        (inner) => aggregateVector(node, inner, context.budget),
      );
    case "label_replace":
      return consume(
        context,
        () => evaluateSeries(node.inner, context),
        (inner) => replaceLabels(node, inner, context.budget),
      );
    case "binary":
      return consume(
        context,
        () => [evaluateNode(node.left, context), evaluateNode(node.right, context)] as const,
        ([left, right]) => evaluateBinary(node, left, right, context.budget),
      );
  }
}

/** Makes series from others, which are no longer held afterwards. */
function consume<In, Out>(
  { budget }: Context,
  evaluateInput: () => In,
  operation: (input: In) => Out,
): Out {
  const before = budget.bytes;
  const input = evaluateInput();
  const held = budget.bytes - before;
  const result = operation(input);
  budget.release(held);
  return result;
}

function evaluateSeries(node: PlanNode, context: Context): SeriesMatrix {
  const value = evaluateNode(node, context);
  return typeof value === "number" ? constantSeries(value, context.pointCount) : value;
}

function evaluateBinary(
  node: BinaryNode,
  left: SeriesMatrix | number,
  right: SeriesMatrix | number,
  budget: Budget,
): SeriesMatrix | number {
  if (typeof left === "number") {
    if (typeof right === "number") return calculateLiterals(node.op, left, right);
    return combineWithLiteral({ node, vector: right, literal: left, side: "left" }, budget);
  }
  if (typeof right === "number") {
    return combineWithLiteral({ node, vector: left, literal: right, side: "right" }, budget);
  }
  return combineVectors(node, left, right, budget);
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
