import { floorDiv, fnv1a32, invalidArgument } from "@skald/model";
import {
  type Expr,
  factsOf,
  type Grouping,
  type MetricExpr,
  type RangeAggregation,
  type RangeOp,
  rangeFacts,
  type Stage,
  type VectorAggregation,
  vectorKinds,
} from "../syntax/ast.js";
import { defaultQueryLimits, type QueryLimits } from "./budget.js";
import {
  type LeafPlan,
  lastWindowEnd,
  type MetricPlan,
  type Plan,
  type PlanNode,
  type Points,
  type QueryParams,
  type Shard,
  type Windows,
} from "./plan.js";

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

  /** `isAnswer`: the answer has the series of the node, maybe under other labels. `read`: see `labelsRead` of LeafPlan. */
  node(expr: MetricExpr, isAnswer: boolean, read?: readonly string[]): PlanNode {
    switch (expr.kind) {
      case "literal":
      case "vector":
        return expr;
      case "range_aggregation":
        return this.#leaf(expr, { grouping: expr.grouping, sumAbove: false, read }, isAnswer);
      case "vector_aggregation":
        return this.#vectorAggregation(expr, isAnswer);
      case "label_replace":
        return { ...expr, inner: this.node(expr.inner, isAnswer) };
      case "binary": {
        // Labels of both sides are compared, unless one is a number.
        const isNumber = expr.left.kind === "literal" || expr.right.kind === "literal";
        const readHere = isNumber ? read : undefined;
        const left = this.node(expr.left, false, readHere);
        return { ...expr, left, right: this.node(expr.right, false, readHere) };
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
    const kind = vectorKinds[expr.op];
    const { without, labels } = expr.grouping ?? { without: false, labels: [] };
    const read = kind === "reduces" && !without ? labels : undefined;
    return { ...expr, inner: this.node(inner, kind === "sorts" && isAnswer, read) };
  }

  #leaf(expr: RangeAggregation, above: Above, isAnswer: boolean): PlanNode {
    // A scan stops as soon as the answer has too many series; series that are aggregated or compared first only take memory.
    const limited = isAnswer && this.#limits.onTooManySeries === "fail";
    const { startNs, stepNs, count } = this.points;
    const { rangeNs, offsetNs } = expr;
    // The language looks from a point t at the times (t - offset - range, t - offset], which in whole ns start 1 later.
    const windows = { startNs: startNs - offsetNs - rangeNs + 1n, stepNs, count, rangeNs };
    const scan = scanOf(expr, above, windows, {
      fromNs: laterOf(windows.startNs, this.#oldestNs),
      maxSeries: limited ? this.#limits.maxSeries : this.#limits.maxInnerSeries,
      maxCells: this.#limits.maxCells,
      nowNs: this.#nowNs,
    });
    const key = scanKey(scan);
    const id = this.#known.get(key) ?? this.leaves.length;
    this.#known.set(key, id);
    const other = this.leaves[id];
    const { functions = [], mode = scan.mode } = other ?? {};
    const read = scan.grouping === undefined ? above.read : undefined;
    const labelsRead = other === undefined ? read : allRead(other.labelsRead, read);
    const { op, parameter } = expr;
    const known = functions.findIndex((one) => one.op === op && one.parameter === parameter);
    const added = { op, ...(parameter !== undefined && { parameter }) };
    this.leaves[id] = {
      ...scan,
      id,
      mode: mode === "count" ? scan.mode : mode,
      ...(labelsRead !== undefined && { labelsRead }),
      functions: known >= 0 ? functions : [...functions, added],
    };
    return { kind: "leaf", leaf: id, function: known >= 0 ? known : functions.length };
  }
}

/** What the node above a leaf wants of it. */
interface Above {
  readonly grouping: Grouping | undefined;
  readonly sumAbove: boolean;
  readonly read?: readonly string[] | undefined;
}

/** A leaf without what tells it apart from others of the same scan. */
type Scan = Omit<LeafPlan, "id" | "functions" | "labelsRead">;

function allRead(one: readonly string[] | undefined, other: readonly string[] | undefined) {
  return one && other && [...new Set([...one, ...other])];
}

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

/** True when grouping the rows gives what grouping the series of the range aggregation would give. */
function isPushedDown(outer: VectorAggregation, inner: RangeAggregation): boolean {
  if (inner.grouping !== undefined) return false;
  if (outer.op === "sum") return rangeFacts[inner.op].adds;
  if (outer.op === "max") return inner.op === "max_over_time";
  return outer.op === "min" && inner.op === "min_over_time";
}

function scanOf(
  expr: RangeAggregation,
  above: Above,
  windows: Windows,
  bounds: { fromNs: bigint; maxSeries: number; maxCells: number; nowNs: bigint },
): Scan {
  const { op, log } = expr;
  const stages = withoutUnreadLines(log.stages, op);
  // absent_over_time asks only whether there are rows; their labels do not matter.
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
    // A rate of unwrapped values is that of their sum.
    mode: op === "rate" && expr.unwrap !== undefined ? "sum" : rangeFacts[op].keeps,
    windows,
    ...(grouping === undefined ? {} : { grouping }),
    extract: needed ? "needed" : "all",
    toNs: lastWindowEnd(windows),
    ...bounds,
  };
}

/**
 * The stages of a range aggregation without the line_formats whose line nothing reads: the aggregation counts no bytes,
 * and no filter, parser or template stands behind them. What they would fail on is not the query's business either.
 */
function withoutUnreadLines(stages: readonly Stage[], op: RangeOp): readonly Stage[] {
  const kept: Stage[] = [];
  let isRead = op === "bytes_over_time" || op === "bytes_rate";
  for (const stage of stages.toReversed()) {
    if (stage.kind === "line_format") {
      if (!isRead) continue;
      isRead = readsLine(stage.template);
    } else {
      isRead ||= looksAtLine(stage);
    }
    kept.push(stage);
  }
  return kept.reverse();
}

/** Whether the effect of a stage depends on the line. The line that it makes does not count. */
function looksAtLine(stage: Stage): boolean {
  if (stage.kind !== "label_format") return factsOf(stage).readsLine;
  return stage.formats.some((format) => format.kind === "template" && readsLine(format.template));
}

function readsLine(template: string): boolean {
  return template.includes("__line__");
}

/**
 * How a query is cut into parts that are scanned on their own, in other threads or processes.
 *
 * Partials of any division of the rows merge into what one scan gives, for every aggregation: sums, extremes,
 * moments and samples all combine. So every leaf may be split by time and sharded by stream, and only the cost decides; partials of mode `samples` are as big as the rows, so cutting them finely does not pay.
 * What comes behind the leaves (vector aggregation, matching) is never split, only cut by points, each of which depends
 * on its own windows alone.
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
