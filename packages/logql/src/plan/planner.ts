import { invalidArgument } from "@skald/model";
import type {
  Expr,
  Grouping,
  MetricExpr,
  RangeAggregation,
  RangeOp,
  VectorAggregation,
} from "../syntax/ast.js";
import { factsOf } from "../syntax/stage-facts.js";
import { defaultQueryLimits, type QueryLimits } from "./limits.js";
import {
  type LeafMode,
  type LeafPlan,
  lastWindowEnd,
  type MetricPlan,
  type Plan,
  type PlanNode,
  type Points,
  type QueryParams,
  type Windows,
} from "./plan.js";
import { withoutUnreadLines } from "./unread-lines.js";

/** Plans a checked query. Throws invalid_argument for what no plan can answer. */
export function planQuery(
  expr: Expr,
  params: QueryParams,
  limits: QueryLimits = defaultQueryLimits,
): Plan {
  if (expr.kind !== "log") return planMetric(expr, params, limits);
  const { startNs, endNs, limit, direction, intervalNs } = params;
  const fromNs = laterOf(startNs, params.oldestNs);
  const range = { fromNs, toNs: endNs, nowNs: params.nowNs ?? endNs };
  return { kind: "log", log: expr, ...range, limit, direction, intervalNs };
}

/** Plans a metric query: its leaves with what can be pushed into them, and the rest as a tree over the leaves. */
function planMetric(expr: MetricExpr, params: QueryParams, limits: QueryLimits): MetricPlan {
  const planner = new MetricPlanner(pointsOf(params), params, limits);
  const root = planner.node(expr, true);
  const instant = params.stepNs === 0n;
  return { kind: "metric", root, leaves: planner.leaves, points: planner.points, instant, limits };
}

function pointsOf({ startNs, endNs, stepNs }: QueryParams): Points {
  if (stepNs === 0n) return { startNs: endNs, stepNs: 0n, count: 1 };
  return { startNs, stepNs, count: Number((endNs - startNs) / stepNs) + 1 };
}

function laterOf(ns: bigint, oldestNs: bigint | undefined): bigint {
  return oldestNs === undefined || ns >= oldestNs ? ns : oldestNs;
}

class MetricPlanner {
  readonly points: Points;
  readonly leaves: LeafPlan[] = [];
  readonly #oldestNs: bigint | undefined;
  readonly #limits: QueryLimits;
  readonly #nowNs: bigint;
  readonly #known = new Map<string, number>();

  constructor(points: Points, params: QueryParams, limits: QueryLimits) {
    this.points = points;
    this.#oldestNs = params.oldestNs;
    this.#limits = limits;
    this.#nowNs = params.nowNs ?? params.endNs;
  }

  /** `isAnswer`: the answer has the series of the node, maybe under other labels. */
  node(expr: MetricExpr, isAnswer: boolean): PlanNode {
    switch (expr.kind) {
      case "literal":
      case "vector":
        return expr;
      case "range_aggregation":
        return this.#leaf(expr, { grouping: expr.grouping, sumAbove: false }, isAnswer);
      case "vector_aggregation":
        return this.#vectorAggregation(expr, isAnswer);
      case "label_replace":
        return { ...expr, inner: this.node(expr.inner, isAnswer) };
      case "binary": {
        const left = this.node(expr.left, false);
        return { ...expr, left, right: this.node(expr.right, false) };
      }
    }
  }

  #vectorAggregation(expr: VectorAggregation, isAnswer: boolean): PlanNode {
    if (expr.op === "approx_topk" && this.points.stepNs !== 0n)
      throw invalidArgument("count min sketches are only supported on instant queries");
    const { inner } = expr;
    if (inner.kind === "range_aggregation" && isPushedDown(expr, inner)) {
      const grouping = expr.grouping ?? { without: false, labels: [] };
      return this.#leaf(inner, { grouping, sumAbove: expr.op === "sum" }, isAnswer);
    }
    const keepsSeries = expr.op === "sort" || expr.op === "sort_desc";
    return { ...expr, inner: this.node(inner, keepsSeries && isAnswer) };
  }

  #leaf(
    expr: RangeAggregation,
    above: { grouping: Grouping | undefined; sumAbove: boolean },
    isAnswer: boolean,
  ): PlanNode {
    // A scan stops as soon as the answer has too many series; series that are aggregated or compared first only take memory.
    const limited = isAnswer && this.#limits.onTooManySeries === "fail";
    const windows = windowsOf(expr, this.points);
    const scan = scanOf(expr, above, windows, {
      fromNs: laterOf(windows.startNs, this.#oldestNs),
      maxSeries: limited ? this.#limits.maxSeries : this.#limits.maxInnerSeries,
      maxCells: this.#limits.maxCells,
      nowNs: this.#nowNs,
    });
    const key = scanKey(scan);
    const id = this.#known.get(key) ?? this.leaves.length;
    this.#known.set(key, id);
    const { functions = [], mode = scan.mode } = this.leaves[id] ?? {};
    const { op, parameter } = expr;
    const known = functions.findIndex((one) => one.op === op && one.parameter === parameter);
    const added = { op, ...(parameter !== undefined && { parameter }) };
    this.leaves[id] = {
      ...scan,
      id,
      mode: mode === "count" ? scan.mode : mode,
      functions: known >= 0 ? functions : [...functions, added],
    };
    return { kind: "leaf", leaf: id, function: known >= 0 ? known : functions.length };
  }
}

/** A leaf without what tells it apart from others of the same scan. */
type Scan = Omit<LeafPlan, "id" | "functions">;

/** Equal for scans that can be one: they keep the same of the same rows. Bytes are kept with the number of rows. */
function scanKey({ matchers, mode, grouping, ...rest }: Scan): string {
  const key = {
    ...rest,
    mode: mode === "count" ? "bytes" : mode,
    matchers: matchers.map((matcher) => JSON.stringify(matcher)).sort(),
    grouping: grouping && { ...grouping, labels: [...grouping.labels].sort() },
  };
  return JSON.stringify(key, (_, value) => (typeof value === "bigint" ? `${value}n` : value));
}

const addedBySum: ReadonlySet<RangeOp> = new Set([
  "count_over_time",
  "rate",
  "bytes_over_time",
  "bytes_rate",
  "sum_over_time",
]);

/** True when grouping the rows gives what grouping the series of the range aggregation would give. */
function isPushedDown(outer: VectorAggregation, inner: RangeAggregation): boolean {
  if (inner.grouping !== undefined) return false;
  if (outer.op === "sum") return addedBySum.has(inner.op);
  if (outer.op === "max") return inner.op === "max_over_time";
  return outer.op === "min" && inner.op === "min_over_time";
}

function scanOf(
  expr: RangeAggregation,
  above: { grouping: Grouping | undefined; sumAbove: boolean },
  windows: Windows,
  bounds: { fromNs: bigint; maxSeries: number; maxCells: number; nowNs: bigint },
): Scan {
  const { op, log } = expr;
  const stages = withoutUnreadLines(log.stages, op);
  // Of absent_over_time only the existence of rows matters, whatever their labels.
  const grouping = op === "absent_over_time" ? { without: false, labels: [] } : above.grouping;
  // A parent sum, the own grouping and an answer without labels let a parser skip what is not used; other parents do
  // not, so that a malformed line fails them.
  const needed =
    above.sumAbove ||
    expr.grouping !== undefined ||
    op === "absent_over_time" ||
    !stages.some((stage) => factsOf(stage).marksErrors);
  return {
    matchers: log.matchers,
    stages,
    ...(expr.unwrap === undefined ? {} : { unwrap: expr.unwrap }),
    mode: modeOf(op, expr.unwrap !== undefined),
    windows,
    ...(grouping === undefined ? {} : { grouping }),
    extract: needed ? "needed" : "all",
    toNs: lastWindowEnd(windows),
    ...bounds,
  };
}

/** The language looks from a point t at the times (t - offset - range, t - offset], which in whole ns start 1 later. */
function windowsOf({ rangeNs, offsetNs }: RangeAggregation, points: Points): Windows {
  const { startNs, stepNs, count } = points;
  return { startNs: startNs - offsetNs - rangeNs + 1n, stepNs, count, rangeNs };
}

function modeOf(op: RangeOp, unwrapped: boolean): LeafMode {
  switch (op) {
    case "count_over_time":
    case "absent_over_time":
      return "count";
    case "rate":
      return unwrapped ? "sum" : "count";
    case "bytes_over_time":
    case "bytes_rate":
      return "bytes";
    case "sum_over_time":
    case "avg_over_time":
      return "sum";
    case "min_over_time":
      return "min";
    case "max_over_time":
      return "max";
    case "stddev_over_time":
    case "stdvar_over_time":
      return "moments";
    case "first_over_time":
      return "first";
    case "last_over_time":
      return "last";
    case "quantile_over_time":
    case "rate_counter":
      return "samples";
  }
}
