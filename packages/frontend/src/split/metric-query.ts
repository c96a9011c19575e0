import type { QueryAnswer } from "@skald/contracts";
import {
  entriesOf,
  longestRangeNs,
  type MatrixResult,
  type MetricExpr,
  printQuery,
  type QueryParams,
  tooManySeries,
} from "@skald/logql";
import {
  addCacheStats,
  emptyCacheStats,
  floorDiv,
  joinQueryStats,
  nsPerSecond,
  type QueryStats,
} from "@skald/model";
import { runConcurrently } from "@skald/runtime";
import { nsOfMs, oldestLasting, type QueryTenantLimits } from "../limits/limits.js";
import { type CacheContext, keptAnswer } from "../results-cache/answer-cache.js";
import { type OpenedRange, RangeCache } from "../results-cache/range-cache.js";
import { joinStretches, lookOf, type PointRun, type Stretch } from "../results-cache/stretches.js";

/** A metric query of a client. */
export interface MetricQuery {
  readonly expr: MetricExpr;
  readonly params: QueryParams;
  /** Answers the query over some of its points. */
  readonly ask: (params: QueryParams, signal: AbortSignal) => Promise<QueryAnswer>;
  /** Parts end at multiples of this many ns since the epoch; 0n: the range is not cut. */
  readonly splitNs: bigint;
  /** Series that the answer may have. */
  readonly maxSeries: number;
  readonly context: CacheContext & { readonly limits: QueryTenantLimits };
}

/** Width of the pieces of range queries that are cached where queries are not split. */
const defaultPieceNs = 3600n * nsPerSecond;

/** Whether queries go to queriers in parts. Each part may read `max_query_bytes_read`, so that the whole could read many times as much. */
export function mayBeSplit(limits: QueryTenantLimits): boolean {
  return limits.split_queries_by_interval > 0 && limits.max_query_bytes_read === 0;
}

/**
 * Answers a range query from the cache and from parts that it asks for, several at a time. The first part that fails fails
 * the query, and ends the others.
 */
export async function answerRange(query: MetricQuery, signal: AbortSignal): Promise<QueryAnswer> {
  const { params, expr, ask, context } = query;
  const started = performance.now();
  const { startNs, endNs, stepNs } = params;
  const all = { from: 0, to: Number((endNs - startNs) / stepNs) };
  const opened = await openCache(query, signal);
  // Each part reads the rows of one range more than its own.
  const longestNs = longestRangeNs(expr);
  const splitNs = query.splitNs > 0n && longestNs > query.splitNs ? longestNs : query.splitNs;
  const runs = splitRuns(opened?.missing ?? [all], params, splitNs);
  const asked: { readonly run: PointRun; readonly answer: QueryAnswer }[] = [];
  const parallelism = Math.max(1, context.limits.max_query_parallelism);
  await runConcurrently(runs, parallelism, signal, async (run, stop) => {
    asked.push({ run, answer: await ask(paramsOf(run, params), stop) });
  });
  const isWhole = runs.length === 1 && runs[0]!.from === 0 && runs[0]!.to === all.to;
  const answers = asked.map(({ answer }) => answer);
  const fresh = asked.map(({ run, answer }) => stretchOf(run, answer));
  const mayKeep = answers.every(({ result }) => result.warnings.length === 0);
  const stored = mayKeep ? opened?.keep(fresh) : undefined;
  const caches =
    opened === undefined
      ? {}
      : { result: addCacheStats(opened.stats, stored ?? emptyCacheStats()) };
  if (isWhole) {
    const [{ result, stats }] = answers as [QueryAnswer];
    return { result, stats: { ...stats, ...(opened === undefined ? {} : { caches }) } };
  }
  const parts = [...(opened?.known ?? []), ...fresh].sort((a, b) => a.from - b.from);
  const series = joinStretches(parts);
  if (series.length > query.maxSeries) throw tooManySeries(query.maxSeries);
  const warnings = [...new Set(answers.flatMap(({ result }) => result.warnings))];
  const points = { startNs, stepNs, count: all.to + 1 };
  const result: MatrixResult = { kind: "matrix", points, series, warnings };
  const stats: QueryStats = {
    ...joinQueryStats(answers.map((answer) => answer.stats)),
    subqueries: runs.length,
    entriesReturned: entriesOf(result),
    caches,
    execSeconds: (performance.now() - started) / 1000,
  };
  return { result, stats };
}

/** How much of a metric query kept answers have; none is said of one at one time. */
export async function keptShare(
  query: Pick<MetricQuery, "expr" | "params" | "context">,
  signal: AbortSignal,
): Promise<"all" | "some" | "none"> {
  const { startNs, endNs, stepNs } = query.params;
  const opened = stepNs === 0n ? undefined : await openCache(query, signal);
  if (opened === undefined) return "none";
  const points = Number((endNs - startNs) / stepNs) + 1;
  const missing = opened.missing.reduce((sum, { from, to }) => sum + to - from + 1, 0);
  if (missing === 0) return "all";
  return missing < points ? "some" : "none";
}

/** What the cache knows of a range query; undefined where it may know nothing. */
async function openCache(
  { expr, params, context }: Pick<MetricQuery, "expr" | "params" | "context">,
  signal: AbortSignal,
): Promise<OpenedRange | undefined> {
  const { stores, querier, tenants, actors = [], limits } = context;
  const store = stores?.result;
  const look = store === undefined ? undefined : lookOf(expr);
  if (store === undefined || look === undefined) return undefined;
  const { startNs, endNs, stepNs } = params;
  const intervalNs = nsOfMs(limits.split_queries_by_interval) || defaultPieceNs;
  const query = {
    ...{ tenants, actors, text: printQuery(expr), look, intervalNs },
    grid: { startNs, stepNs, count: Number((endNs - startNs) / stepNs) + 1 },
    oldestNs: oldestLasting(limits, params),
  };
  return new RangeCache({ store, changes: querier }).open(query, signal);
}

/** Answers a query at one time: from the cache, while no row of its ranges comes or goes. */
export async function answerInstant(
  { expr, params, ask, context }: Omit<MetricQuery, "splitNs">,
  signal: AbortSignal,
): Promise<QueryAnswer> {
  const { limits, tenants } = context;
  const look = lookOf(expr);
  const { endNs } = params;
  const isCached = look !== undefined && endNs - look.beforeNs >= oldestLasting(limits, params);
  if (!isCached) return ask(params, signal);
  const { max_query_series } = limits;
  const question = {
    ...({ kind: "instantMetricResult", tenants } as const),
    range: { fromNs: endNs - look.beforeNs + 1n, toNs: endNs + look.afterNs + 1n },
    asked: { text: printQuery(expr), endNs, max_query_series },
    ask: () => ask(params, signal),
    mayKeep: ({ result }: QueryAnswer) => result.warnings.length === 0,
  };
  const { answer, caches, isKept } = await keptAnswer(question, context, signal);
  const stats = isKept ? joinQueryStats([]) : answer.stats;
  const { result } = answer;
  return { result, stats: { ...stats, caches, entriesReturned: entriesOf(result) } };
}

function paramsOf({ from, to }: PointRun, params: QueryParams): QueryParams {
  const { startNs, stepNs } = params;
  const at = (point: number) => startNs + stepNs * BigInt(point);
  return { ...params, startNs: at(from), endNs: at(to) };
}

function stretchOf(run: PointRun, { result }: QueryAnswer): Stretch {
  if (result.kind !== "matrix") throw new Error(`a range query was answered with a ${result.kind}`);
  return { ...run, series: result.series, shift: run.from };
}

/** Cuts runs of points at multiples of an interval of time since the epoch; 0n leaves them as they are. */
function splitRuns(
  runs: readonly PointRun[],
  { startNs, stepNs }: { readonly startNs: bigint; readonly stepNs: bigint },
  intervalNs: bigint,
): PointRun[] {
  if (intervalNs <= 0n) return [...runs];
  return runs.flatMap(({ from, to }) => {
    const parts: PointRun[] = [];
    for (let begin = from; begin <= to; ) {
      const ns = startNs + stepNs * BigInt(begin);
      const edge = (floorDiv(ns, intervalNs) + 1n) * intervalNs;
      const last = Math.min(to, begin + Number((edge - 1n - ns) / stepNs));
      parts.push({ from: begin, to: last });
      begin = last + 1;
    }
    return parts;
  });
}
