import type { QueryAnswer } from "@skald/contracts";
import {
  compilePipeline,
  defaultQueryLimits,
  type Expr,
  type Plan,
  parseQuery,
  planQuery,
  type QueryLimits,
  type QueryParams,
} from "@skald/logql";
import {
  type Clock,
  errorCodeOf,
  fnv1a32,
  invalidArgument,
  nowNs,
  type QueryStats,
  type ReadStats,
  SkaldError,
} from "@skald/model";
import { type Span, traced } from "@skald/runtime/tracing";
import { checkBlocked, checkQueryLimits, queryKind, rangesOf } from "./limits/check-limits.js";
import {
  clampStart,
  nsOfMs,
  oldestAllowed,
  type QueryTenantLimits,
  withTimeout,
} from "./limits/limits.js";
import { Lists } from "./lists.js";
import type { InstantParams, RangeParams } from "./params/params.js";
import type { Asker, QueryContext } from "./query-context.js";
import { answerLogs } from "./split/log-query.js";
import { answerInstant, answerRange, type MetricQuery, mayBeSplit } from "./split/metric-query.js";
import { PartLengths } from "./split/part-lengths.js";

/** A query that was parsed and may be run: plain data, which other threads can go on with. */
export interface PlannedQuery {
  readonly text: string;
  readonly expr: Expr;
  /** The range within which the tenants may look. */
  readonly params: QueryParams;
  /** Time in which it was parsed and checked. */
  readonly planSeconds: number;
  /** Plans that were made for ranges, by `rangeKey`. */
  readonly plans: Map<string, Plan>;
}

/** A query that is to be explained: plain data. */
export interface ExplainedPlan {
  readonly expr: Expr;
  readonly text: string;
  /** Absent for a query that will be refused. */
  readonly query?: PlannedQuery;
  /** The text with which it will be refused. */
  readonly refusedBy?: string;
}

export interface FrontendOptions {
  readonly clock: Clock;
  /** Move both ends of a metric query down to multiples of its step; false if not given. */
  readonly alignToStep?: boolean | undefined;
}

/** Bytes of a sample that is being made. */
const sampleBytes = 32;

/** Parses and checks queries of clients, and has a querier answer them. Between two requests it keeps only how much queries read. */
export class Frontend {
  /** What there is, without its rows. */
  readonly lists: Lists;
  readonly #clock: Clock;
  readonly #alignToStep: boolean;
  readonly #partLengths = new PartLengths();

  constructor({ clock, alignToStep = false }: FrontendOptions) {
    this.lists = new Lists(clock);
    this.#clock = clock;
    this.#alignToStep = alignToStep;
  }

  nowNs(): bigint {
    return nowNs(this.#clock);
  }

  /**
   * Parses a range query and checks it. Throws invalid_argument for one that breaks a limit. `known` is what a thread made of
   * the same text before.
   */
  planRange(params: RangeParams, asker: Asker, known?: Expr): PlannedQuery {
    const started = performance.now();
    const expr = known ?? parseQuery(params.query);
    return this.#plan(expr, params, asker, { isKnown: known !== undefined, started });
  }

  /** Parses a range query like `planRange`; one that a limit forbids comes with what it would be answered. */
  planExplain(params: RangeParams, asker: Asker): ExplainedPlan {
    const expr = parseQuery(params.query);
    try {
      const query = this.#plan(expr, params, asker, { isKnown: false, started: performance.now() });
      return { expr, text: params.query, query };
    } catch (error) {
      if (!(error instanceof SkaldError)) throw error;
      return { expr, text: params.query, refusedBy: error.message };
    }
  }

  /** Parses and checks a query at one time: only metric queries; a log query is refused. */
  planInstant(params: InstantParams, asker: Asker, known?: Expr): PlannedQuery {
    const started = performance.now();
    const expr = known ?? parseQuery(params.query);
    if (expr.kind === "log") {
      throw invalidArgument(
        "log queries are not supported as an instant query type, please change your query to a range query type",
      );
    }
    const { timeNs, query, limit, direction } = params;
    const range = { startNs: timeNs, endNs: timeNs, stepNs: 0n, intervalNs: 0n, limit, direction };
    return this.#plan(expr, { query, ...range }, asker, { isKnown: known !== undefined, started });
  }

  #plan(
    expr: Expr,
    { query: text, ...params }: RangeParams,
    { limits, ...asker }: Asker,
    { isKnown, started }: { readonly isKnown: boolean; readonly started: number },
  ): PlannedQuery {
    checkBlocked({ text, expr, tags: asker.queryTags ?? "" }, limits);
    const now = this.nowNs();
    const oldestNs = oldestAllowed(limits, now);
    const clamped = { ...params, startNs: clampStart(params, oldestNs) };
    checkQueryLimits(expr, clamped, limits);
    if (!isKnown) checkStages(expr);
    const aligned = this.#alignToStep && expr.kind !== "log" ? alignToStep(clamped) : clamped;
    const planSeconds = (performance.now() - started) / 1000;
    const all = { ...aligned, oldestNs, nowNs: now };
    return { text, expr, params: all, planSeconds, plans: new Map() };
  }

  /** Runs a query within the timeout of its tenants. */
  run(planned: PlannedQuery, context: QueryContext): Promise<QueryAnswer> {
    const { text, expr, params } = planned;
    const { tenants, limits, signal } = context;
    const attributes = { tenant: tenants.join("|"), "skald.query_hash": fnv1a32(text) };
    return traced("query", { attributes }, (span) =>
      observed(planned, context, span, () =>
        withTimeout(limits, signal, (bounded) => {
          const ask = asking(planned, context);
          const splits = context.splitsByTime === true && mayBeSplit(limits);
          const splitNs = splits ? nsOfMs(limits.split_queries_by_interval) : 0n;
          if (expr.kind === "log") {
            const parallelism = limits.max_query_parallelism || 1;
            const { maxMemoryBytes } = byteLimitsOf(limits);
            return answerLogs({ params, ask, splitNs, parallelism, maxMemoryBytes }, bounded);
          }
          const asked = { expr, params, maxSeries: maxSeriesOf(limits), ask, context };
          if (params.stepNs === 0n) return answerInstant(asked, bounded);
          return this.#answerRange({ ...asked, splitNs }, text, bounded);
        }),
      ),
    );
  }

  async #answerRange(query: MetricQuery, text: string, signal: AbortSignal): Promise<QueryAnswer> {
    const { params, context, splitNs } = query;
    if (splitNs === 0n) return answerRange(query, signal);
    const { tenants } = context;
    const longNs = this.#partLengths.of(tenants, text, splitNs);
    const answer = await answerRange({ ...query, splitNs: longNs }, signal).catch((error) => {
      if (longNs === splitNs || errorCodeOf(error) !== "invalid_argument") throw error;
      // Shorter parts may be within the limits of what a query holds.
      this.#partLengths.keepShort(tenants, text);
      return answerRange(query, signal);
    });
    this.#partLengths.note(tenants, text, params.endNs - params.startNs, answer.stats);
    return answer;
  }
}

/** Asks the querier for a part of a query, which may be all of it. */
function asking(
  { expr, plans }: PlannedQuery,
  { tenants, limits, actors = [], querier }: QueryContext,
) {
  const byteLimits = byteLimitsOf(limits);
  const planLimits = planLimitsOf(limits);
  return (part: QueryParams, signal: AbortSignal): Promise<QueryAnswer> => {
    const key = `${part.startNs} ${part.endNs} ${part.limit}`;
    const plan = plans.get(key) ?? planQuery(expr, part, planLimits);
    plans.set(key, plan);
    const request = { tenants, plan, limits: byteLimits, actors };
    return querier.run("query", request, { signal });
  };
}

/** The limits that plans of a tenant carry. */
export function planLimitsOf(limits: QueryTenantLimits): QueryLimits {
  const { maxCells } = defaultQueryLimits;
  const { maxMemoryBytes } = byteLimitsOf(limits);
  return {
    ...defaultQueryLimits,
    maxCells: Math.min(maxCells, Math.floor(maxMemoryBytes / sampleBytes)),
    maxSeries: maxSeriesOf(limits),
  };
}

function byteLimitsOf({ max_query_bytes_read, max_query_memory_bytes }: QueryTenantLimits) {
  const maxMemoryBytes = max_query_memory_bytes || Number.MAX_SAFE_INTEGER;
  return { maxBytesRead: max_query_bytes_read, maxMemoryBytes };
}

function maxSeriesOf({ max_query_series }: QueryTenantLimits): number {
  return max_query_series || Number.MAX_SAFE_INTEGER;
}

/** Runs a query and calls `onQuery` with its end. Faults of the program are logged elsewhere. */
async function observed(
  { text, expr, params, planSeconds }: PlannedQuery,
  { onQuery, queueSeconds = 0, tenants, queryTags: tags = "" }: QueryContext,
  span: Span,
  query: () => Promise<QueryAnswer>,
): Promise<QueryAnswer> {
  const start = performance.now();
  const { startNs, endNs, stepNs, limit } = params;
  const asked = { tenants, query: text, tags, lengthNs: endNs - startNs, stepNs, limit };
  const tell = (status: number, stats?: QueryStats): void =>
    onQuery?.({
      asked,
      status,
      type: queryKind(expr),
      range: stepNs === 0n ? "instant" : "range",
      seconds: (performance.now() - start) / 1000,
      stats,
    });
  try {
    const answer = await query();
    const stats = { ...answer.stats, queueSeconds, planSeconds };
    tell(200, stats);
    span.set(factsOf(stats));
    return { ...answer, stats };
  } catch (error) {
    if (error instanceof SkaldError) tell(error.status);
    throw error;
  }
}

/** What a span tells of a query that was answered. */
function factsOf({ ingester, store, shards, queueSeconds, entriesReturned }: QueryStats) {
  const bytesOf = ({ headBytes, decompressedBytes }: ReadStats) => headBytes + decompressedBytes;
  return {
    "skald.splits": shards,
    "skald.bytes_scanned": bytesOf(ingester) + bytesOf(store),
    "skald.queue_seconds": queueSeconds,
    "skald.entries_returned": entriesReturned,
  };
}

function alignToStep(params: QueryParams): QueryParams {
  const { startNs, endNs, stepNs } = params;
  if (stepNs === 0n) return params;
  const floor = (ns: bigint) => ns - (((ns % stepNs) + stepNs) % stepNs);
  return { ...params, startNs: floor(startNs), endNs: floor(endNs) };
}

/** Builds all stages of a query once, because what they refuse must not depend on the plan or the data. */
function checkStages(expr: Expr): void {
  if (expr.kind === "log") {
    compilePipeline({ stages: expr.stages, output: { kind: "log" } });
    return;
  }
  for (const { log, unwrap } of rangesOf(expr)) {
    const { stages } = log;
    compilePipeline({ stages, ...(unwrap && { unwrap }), output: { kind: "metric" } });
  }
}
