import {
  compareLabels,
  compileRegex,
  compileReplacement,
  emptyLabels,
  formatLabels,
  invalidArgument,
  type Labels,
  labelValue,
  makeLabels,
} from "@skald/model";
import { Budget, partialSeriesWarning, tooManySeries } from "../plan/budget.js";
import type {
  MatrixSeries,
  MetricPlan,
  PlanNode,
  QueryResult,
  SeriesMatrix,
} from "../plan/plan.js";
import type { BinaryExpr, LabelReplace } from "../syntax/ast.js";
import { vectorKinds } from "../syntax/ast.js";
import { calculateLiterals } from "../syntax/operator.js";
import { aggregateVector } from "./aggregate.js";
import { combineVectors, combineWithLiteral } from "./binary.js";

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

/** Evaluates a node to series, or an expression of literals to its number. What its inputs hold is released. */
function evaluateNode(node: PlanNode, context: Context): SeriesMatrix | number {
  const { budget } = context;
  const before = budget.bytes;
  const inputs = inputsOf(node).map((input) => evaluateNode(input, context));
  const held = budget.bytes - before;
  const result = combine(node, inputs, context);
  budget.release(held);
  return result;
}

function inputsOf(node: PlanNode): readonly PlanNode[] {
  if (node.kind === "binary") return [node.left, node.right];
  return "inner" in node ? [node.inner] : [];
}

function combine(
  node: PlanNode,
  [first = 0, second = 0]: readonly (SeriesMatrix | number)[],
  { leaves, pointCount, budget }: Context,
): SeriesMatrix | number {
  const series = () => (typeof first === "number" ? constantSeries(first, pointCount) : first);
  switch (node.kind) {
    case "literal":
      return node.value;
    case "vector":
      return constantSeries(node.value, pointCount);
    case "leaf": {
      const found = leaves.get(node.leaf)?.[node.function];
      if (found === undefined) throw new Error(`leaf ${node.leaf} was not scanned`);
      return found;
    }
    case "vector_aggregation":
      return aggregateVector(node, series(), budget);
    case "label_replace":
      return replaceLabels(node, series(), budget);
    case "binary":
      return evaluateBinary(node, first, second, budget);
  }
}

function evaluateBinary(
  node: BinaryExpr<PlanNode>,
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

/**
 * The answer of a plan whose expression gave these series: sorted, each once, without empty series, within the limit.
 * Throws invalid_argument when two samples of one series stand at a point, or there are too many series.
 */
function resultOfMatrix(plan: MetricPlan, evaluated: SeriesMatrix, budget: Budget): QueryResult {
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
    const samples = order.map((s) => ({ labels: matrix.labels[s]!, value: matrix.values[s]![0]! }));
    return { kind: "vector", atNs: points.startNs, samples, warnings };
  }
  return { kind: "matrix", points, series: order.map((s) => seriesOf(matrix, s)), warnings };
}

/** True when series of an expression may be equal: label_replace makes them so, and `or` takes from both sides. */
function mayRepeat(node: PlanNode): boolean {
  if (node.kind === "label_replace" || (node.kind === "binary" && node.op === "or")) return true;
  return inputsOf(node).some(mayRepeat);
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
  if (node.kind === "vector_aggregation" && vectorKinds[node.op] === "sorts") return true;
  return inputsOf(node).some(isSorted);
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

/**
 * label_replace: sets a label of every series whose source label the regular expression matches as a whole. Series may
 * become equal: an aggregation above merges them.
 */
export function replaceLabels(
  node: LabelReplace<PlanNode>,
  input: SeriesMatrix,
  budget: Budget,
): SeriesMatrix {
  const replace = compileLabelReplace(node, budget);
  const labels = input.labels.map((all) => {
    const replaced = replace(all);
    budget.holdSeries(replaced, input.pointCount);
    return replaced;
  });
  return { ...input, labels };
}

function compileLabelReplace(
  node: LabelReplace<PlanNode>,
  budget: Budget,
): (labels: Labels) => Labels {
  const regex = compileRegex(node.regex, { anchored: true });
  const replacement = compileReplacement(node.replacement, regex);
  const { destination, source } = node;
  return (labels) => {
    const text = labelValue(labels, source);
    budget.work(text.length);
    const match = regex.exec(text);
    if (match === undefined) return labels;
    const value = replacement(text, match.groups);
    // Before the text is built: each of several nested calls may double the last one's.
    const length = value.reduce((sum, part) => sum + part.length, 0);
    budget.work(length);
    budget.hold(length);
    budget.release(length);
    const pairs = labels.names.map((name, i) => [name, labels.values[i] as string] as const);
    return makeLabels([...pairs, [destination, value.join("")]]);
  };
}
