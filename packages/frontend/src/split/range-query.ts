import type { QueryAnswer } from "@skald/contracts";
import { type MatrixResult, type QueryParams, tooManySeries } from "@skald/logql";
import { addCacheStats, emptyCacheStats, joinQueryStats, type QueryStats } from "@skald/model";
import { runConcurrently } from "@skald/runtime";
import type { CachedQuery, RangeCache } from "../results-cache/range-cache.js";
import { joinStretches, type PointRun, type Stretch } from "../results-cache/stretches.js";
import { splitRuns } from "./split-runs.js";

/** A range query of a metric, to be answered from what is known of it and from parts that are asked for. */
export interface RangeQuery {
  readonly params: QueryParams;
  /** Series that the answer may have. */
  readonly maxSeries: number;
  /** Answers the query over some of its points. */
  readonly ask: (params: QueryParams, signal: AbortSignal) => Promise<QueryAnswer>;
  /** Parts end at multiples of this many ns since the epoch; 0n: what is asked for is not cut. */
  readonly splitNs: bigint;
  /** Parts that are asked for at a time. */
  readonly parallelism: number;
  /** Absent where nothing is kept of it. */
  readonly cached?: { readonly cache: RangeCache; readonly query: CachedQuery } | undefined;
}

/** Answers a range query; the first part that fails fails it, and ends the others. */
export async function answerRange(query: RangeQuery, signal: AbortSignal): Promise<QueryAnswer> {
  const { cached, params } = query;
  const started = performance.now();
  const { startNs, endNs, stepNs } = params;
  const all = { from: 0, to: Number((endNs - startNs) / stepNs) };
  const opened = await cached?.cache.open(cached.query, signal);
  const runs = splitRuns(opened?.missing ?? [all], params, query.splitNs);
  const asked: { readonly run: PointRun; readonly answer: QueryAnswer }[] = [];
  await runConcurrently(runs, Math.max(1, query.parallelism), signal, async (run, stop) => {
    asked.push({ run, answer: await query.ask(paramsOf(run, params), stop) });
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
  const stats: QueryStats = {
    ...joinQueryStats(answers.map((answer) => answer.stats)),
    subqueries: runs.length,
    caches,
    execSeconds: (performance.now() - started) / 1000,
  };
  const series = joinStretches(parts);
  if (series.length > query.maxSeries) throw tooManySeries(query.maxSeries);
  const warnings = [...new Set(answers.flatMap(({ result }) => result.warnings))];
  const points = { startNs, stepNs, count: all.to + 1 };
  const result: MatrixResult = { kind: "matrix", points, series, warnings };
  return { result, stats };
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
