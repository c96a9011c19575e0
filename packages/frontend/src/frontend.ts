import type { Querier, QueryAnswer } from "@skald/contracts";
import {
  compilePipeline,
  defaultQueryLimits,
  type Expr,
  formatQuery,
  parseQuery,
  planQuery,
  type QueryParams,
} from "@skald/logql";
import {
  type Clock,
  fnv1a32,
  invalidArgument,
  nowNs,
  type QueryStats,
  type ReadStats,
  SkaldError,
} from "@skald/model";
import { type Span, traced } from "@skald/runtime/tracing";
import { checkBlocked, queryKind } from "./limits/blocked-queries.js";
import { checkQueryLimits, rangesOf } from "./limits/check-limits.js";
import { combineLimits, nsOfMs, type QueryTenantLimits } from "./limits/limits.js";
import { clampStart, oldestAllowed } from "./limits/look-back.js";
import { withTimeout } from "./limits/timeout.js";
import { Lists } from "./lists.js";
import type { InstantParams, RangeParams } from "./params/params.js";
import { KeptAnswers, type KeptResults } from "./results-cache/kept-answers.js";
import { answerLogs } from "./split/log-query.js";
import { type AskPart, MetricAnswers, mayBeSplit } from "./split/metric-answers.js";

export interface FrontendDeps {
  readonly querier: Querier;
  readonly limitsOf: (tenant: string) => QueryTenantLimits;
  readonly clock: Clock;
  /** How long the request waited before it came here; 0 if not given. */
  readonly queueSeconds?: number | undefined;
  /** Told of each query that was run. */
  readonly onQuery?: ((facts: QueryFacts) => void) | undefined;
  /** Who asks within the tenant; see `QueryShare`. */
  readonly actors?: readonly string[];
  /** What the client says about the query: `a=b,c=d`. */
  readonly queryTags?: string | undefined;
  /** Move both ends of a metric query down to multiples of its step; false if not given. */
  readonly alignToStep?: boolean | undefined;
  /** Cut queries over a range by time, so that several queriers answer one; false if not given. */
  readonly splitsByTime?: boolean | undefined;
  /** Keeps answers; absent where nothing is kept. */
  readonly results?: KeptResults | undefined;
}

/** A query that was run, for whoever counts; plain data. */
export interface QueryFacts {
  /** As HTTP says it. */
  readonly status: number;
  /** `limited` are log queries without stages: they end with their limit. */
  readonly type: "metric" | "filter" | "limited";
  readonly range: "instant" | "range";
  readonly seconds: number;
  /** Of one that was answered. */
  readonly stats: QueryStats | undefined;
}

/** What a sample in the making takes. */
const sampleBytes = 32;
/** Takes queries from clients: parses, limits, plans, and passes them to a querier. */
export class Frontend {
  /** What there is, without its rows. */
  readonly lists: Lists;
  readonly #querier: Querier;
  readonly #limitsOf: (tenant: string) => QueryTenantLimits;
  readonly #clock: Clock;
  readonly #actors: readonly string[];
  readonly #queryTags: string;
  readonly #alignToStep: boolean;
  readonly #queueSeconds: number;
  readonly #metrics: MetricAnswers;
  readonly #splitsByTime: boolean;
  readonly #onQuery: ((facts: QueryFacts) => void) | undefined;

  constructor(deps: FrontendDeps) {
    this.#querier = deps.querier;
    this.#limitsOf = deps.limitsOf;
    this.#clock = deps.clock;
    this.#actors = deps.actors ?? [];
    this.#queryTags = deps.queryTags ?? "";
    this.#alignToStep = deps.alignToStep === true;
    this.#queueSeconds = deps.queueSeconds ?? 0;
    const kept = { results: deps.results, actors: this.#actors };
    this.#splitsByTime = deps.splitsByTime === true;
    this.#metrics = new MetricAnswers({ ...kept, splitsByTime: this.#splitsByTime });
    this.#onQuery = deps.onQuery;
    const limitsOf = (tenants: readonly string[]) => this.#limits(tenants);
    const { querier, clock } = deps;
    this.lists = new Lists({
      querier,
      clock,
      limitsOf,
      actors: this.#actors,
      kept: new KeptAnswers(kept),
    });
  }

  nowNs(): bigint {
    return nowNs(this.#clock);
  }

  async queryRange(
    tenants: readonly string[],
    params: RangeParams,
    signal: AbortSignal,
  ): Promise<QueryAnswer> {
    const expr = parseQuery(params.query);
    return this.#run(tenants, { text: params.query, expr }, params, signal);
  }

  /** Only metric queries; a log query is refused. */
  async queryInstant(
    tenants: readonly string[],
    params: InstantParams,
    signal: AbortSignal,
  ): Promise<QueryAnswer> {
    const expr = parseQuery(params.query);
    if (expr.kind === "log") {
      throw invalidArgument(
        "log queries are not supported as an instant query type, please change your query to a range query type",
      );
    }
    const { timeNs, limit, direction } = params;
    const range = { startNs: timeNs, endNs: timeNs, stepNs: 0n, intervalNs: 0n, limit, direction };
    return this.#run(tenants, { text: params.query, expr }, range, signal);
  }

  format(query: string): string {
    return formatQuery(parseQuery(query));
  }

  async #run(
    tenants: readonly string[],
    { text, expr }: { readonly text: string; readonly expr: Expr },
    params: QueryParams,
    signal: AbortSignal,
  ): Promise<QueryAnswer> {
    const limits = this.#limits(tenants);
    checkBlocked({ text, expr, tags: this.#queryTags }, limits);
    const nowNs = this.nowNs();
    const oldestNs = oldestAllowed(limits, nowNs);
    const clamped = { ...params, startNs: clampStart(params, oldestNs) };
    checkQueryLimits(expr, clamped, limits);
    checkStages(expr);
    const aligned = this.#alignToStep && expr.kind !== "log";
    const range = { ...(aligned ? alignToStep(clamped) : clamped), oldestNs, nowNs };
    const maxMemoryBytes = limits.max_query_memory_bytes || Number.MAX_SAFE_INTEGER;
    const maxSeries = limits.max_query_series || Number.MAX_SAFE_INTEGER;
    const planLimits = {
      ...defaultQueryLimits,
      maxCells: Math.min(defaultQueryLimits.maxCells, Math.floor(maxMemoryBytes / sampleBytes)),
      maxSeries,
    };
    const ask: AskPart = (part, own) => {
      const request = {
        tenants,
        plan: planQuery(expr, part, planLimits),
        limits: { maxBytesRead: limits.max_query_bytes_read, maxMemoryBytes },
        actors: this.#actors,
      };
      return this.#querier.run("query", request, { signal: own });
    };
    const attributes = { tenant: tenants.join("|"), "skald.query_hash": fnv1a32(text) };
    return traced("query", { attributes }, (span) =>
      this.#told(expr, params, span, () =>
        withTimeout(limits, signal, (bounded) => {
          if (expr.kind === "log") {
            const splits = this.#splitsByTime && mayBeSplit(limits);
            const splitNs = splits ? nsOfMs(limits.split_queries_by_interval) : 0n;
            const parallelism = limits.max_query_parallelism || 1;
            return answerLogs(
              { params: range, ask, splitNs, parallelism, maxMemoryBytes },
              bounded,
            );
          }
          const asked = { tenants, expr, params: range, limits, maxSeries, ask };
          return range.stepNs > 0n
            ? this.#metrics.range(asked, bounded)
            : this.#metrics.instant(asked, bounded);
        }),
      ),
    );
  }

  /** Runs a query and tells how it ended; a fault of the program is told by whoever logs it. */
  async #told(
    expr: Expr,
    { stepNs }: QueryParams,
    span: Span,
    query: () => Promise<QueryAnswer>,
  ): Promise<QueryAnswer> {
    const start = performance.now();
    const tell = (status: number, stats?: QueryStats): void =>
      this.#onQuery?.({
        status,
        type: queryKind(expr),
        range: stepNs === 0n ? "instant" : "range",
        seconds: (performance.now() - start) / 1000,
        stats,
      });
    try {
      const answer = await query();
      const stats = { ...answer.stats, queueSeconds: this.#queueSeconds };
      tell(200, stats);
      span.set(factsOf(stats));
      return { ...answer, stats };
    } catch (error) {
      if (error instanceof SkaldError) tell(error.status);
      throw error;
    }
  }

  #limits(tenants: readonly string[]): QueryTenantLimits {
    return combineLimits(tenants.map((tenant) => this.#limitsOf(tenant)));
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
