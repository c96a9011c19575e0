import type { QueryAnswer } from "@skald/contracts";
import { longestRangeNs, type MetricExpr, printQuery, type QueryParams } from "@skald/logql";
import { joinQueryStats, nsPerSecond } from "@skald/model";
import { nsOfMs, type QueryTenantLimits } from "../limits/limits.js";
import { oldestLasting } from "../limits/look-back.js";
import { KeptAnswers, type KeptAnswersDeps } from "../results-cache/kept-answers.js";
import { lookOf } from "../results-cache/look.js";
import { RangeCache } from "../results-cache/range-cache.js";
import { answerRange, type RangeQuery } from "./range-query.js";

/** Pieces of range queries are kept by hours where queries are not split. */
const defaultPieceNs = 3600n * nsPerSecond;
/** Whether queries go to queriers in parts: of what each may read on its own the whole could read many times as much. */
export function mayBeSplit(limits: QueryTenantLimits): boolean {
  return limits.split_queries_by_interval > 0 && limits.max_query_bytes_read === 0;
}

/** Asks for a part of a query. */
export type AskPart = (params: QueryParams, signal: AbortSignal) => Promise<QueryAnswer>;

/** A metric query of a client. */
export interface AskedMetric {
  readonly tenants: readonly string[];
  readonly expr: MetricExpr;
  readonly params: QueryParams;
  readonly limits: QueryTenantLimits;
  readonly maxSeries: number;
  readonly ask: AskPart;
}

export interface MetricAnswersDeps extends KeptAnswersDeps {
  /** Cut range queries by time, so that several queriers answer one. */
  readonly splitsByTime: boolean;
}

/** Answers metric queries of what is kept and of what is asked for, in parts. */
export class MetricAnswers {
  readonly #deps: MetricAnswersDeps;
  readonly #answers: KeptAnswers;

  constructor(deps: MetricAnswersDeps) {
    this.#deps = deps;
    this.#answers = new KeptAnswers(deps);
  }

  range(asked: AskedMetric, signal: AbortSignal): Promise<QueryAnswer> {
    const { expr, params, limits, maxSeries, ask } = asked;
    const intervalNs = nsOfMs(limits.split_queries_by_interval);
    const longestNs = longestRangeNs(expr);
    const splits = this.#deps.splitsByTime && mayBeSplit(limits);
    return answerRange(
      {
        ...{ params, maxSeries, ask },
        // Each part reads the rows of one range more than its own.
        splitNs: splits ? (longestNs > intervalNs ? longestNs : intervalNs) : 0n,
        parallelism: limits.max_query_parallelism || 1,
        cached: this.#cachedRange(asked, intervalNs || defaultPieceNs),
      },
      signal,
    );
  }

  #cachedRange(
    { tenants, expr, params, limits }: AskedMetric,
    intervalNs: bigint,
  ): RangeQuery["cached"] {
    const { results, actors } = this.#deps;
    const store = results?.stores.result;
    const look = store === undefined ? undefined : lookOf(expr);
    if (results === undefined || store === undefined || look === undefined) return undefined;
    const { startNs, endNs, stepNs } = params;
    const query = {
      ...{ tenants, actors, text: printQuery(expr), look, intervalNs },
      grid: { startNs, stepNs, count: Number((endNs - startNs) / stepNs) + 1 },
      oldestNs: oldestLasting(limits, params),
    };
    return { cache: new RangeCache({ store, ...results }), query };
  }

  async instant(
    { tenants, expr, params, limits, ask }: AskedMetric,
    signal: AbortSignal,
  ): Promise<QueryAnswer> {
    const look = lookOf(expr);
    const { endNs } = params;
    const mayKeep = look !== undefined && endNs - look.beforeNs >= oldestLasting(limits, params);
    if (!mayKeep) return ask(params, signal);
    const range = { fromNs: endNs - look.beforeNs + 1n, toNs: endNs + look.afterNs + 1n };
    const { max_query_series } = limits;
    const { answer, caches, isKept } = await this.#answers.answer(
      "instantMetricResult",
      { tenants, range, asked: { text: printQuery(expr), endNs, max_query_series } },
      () => ask(params, signal),
      ({ result }) => result.warnings.length === 0,
      signal,
    );
    const stats = isKept ? joinQueryStats([]) : answer.stats;
    return { result: answer.result, stats: { ...stats, caches } };
  }
}
