import type {
  Querier,
  QueryAnswer,
  StreamsRequest,
  TenantLabels,
  TenantStreams,
  VolumeAnswer,
  VolumePlan,
} from "@skald/contracts";
import {
  compilePipeline,
  defaultQueryLimits,
  type Expr,
  formatQuery,
  parseQuery,
  parseSelector,
  planQuery,
  type QueryParams,
} from "@skald/logql";
import {
  type Clock,
  fnv1a32,
  invalidArgument,
  joinQueryStats,
  type Matcher,
  notFound,
  nowNs,
  type QueryStats,
  type ReadStats,
  SkaldError,
  type TimeRange,
} from "@skald/model";
import { deadline } from "@skald/runtime";
import { type Span, traced } from "@skald/runtime/tracing";
import type { InstantParams, RangeParams } from "./http/params.js";
import { checkBlocked, queryKind } from "./limits/blocked-queries.js";
import { checkLength, checkQueryLimits, rangesOf } from "./limits/check-limits.js";
import { combineLimits, nsOfMs, type QueryTenantLimits } from "./limits/limits.js";
import { clampStart, noLongerAvailable, oldestAllowed, oldestLasting } from "./limits/look-back.js";
import { KeptAnswers, type KeptResults } from "./results-cache/kept-answers.js";
import { selectorsOf, seriesSelectors } from "./selectors.js";
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

/** How much there is of a selector. */
export interface IndexStats {
  readonly streams: number;
  /** Blocks with such rows. */
  readonly chunks: number;
  /** Of lines. */
  readonly bytes: number;
  readonly entries: number;
}

/** The label that tells the tenants of one query apart. */
export const tenantLabel = "__tenant_id__";
/** What a sample in the making takes. */
const sampleBytes = 32;
/** Takes queries from clients: parses, limits, plans, and passes them to a querier. */
export class Frontend {
  readonly #querier: Querier;
  readonly #limitsOf: (tenant: string) => QueryTenantLimits;
  readonly #clock: Clock;
  readonly #actors: readonly string[];
  readonly #queryTags: string;
  readonly #alignToStep: boolean;
  readonly #queueSeconds: number;
  readonly #kept: KeptAnswers;
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
    this.#kept = new KeptAnswers(kept);
    this.#splitsByTime = deps.splitsByTime === true;
    this.#metrics = new MetricAnswers({ ...kept, splitsByTime: this.#splitsByTime });
    this.#onQuery = deps.onQuery;
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

  async labelNames(
    tenants: readonly string[],
    query: string,
    range: TimeRange,
    signal: AbortSignal,
  ): Promise<string[]> {
    const names = new Set<string>();
    for (const { texts } of await this.#labels(tenants, { query }, range, signal)) {
      for (const name of texts) names.add(name);
    }
    if (tenants.length > 1 && names.size > 0) names.add(tenantLabel);
    return [...names].sort();
  }

  async labelValues(
    tenants: readonly string[],
    name: string,
    query: string,
    range: TimeRange,
    signal: AbortSignal,
  ): Promise<string[]> {
    if (name === tenantLabel) return [...tenants];
    const found = await this.#labels(tenants, { query, label: name }, range, signal);
    if (found.length === 1) return [...(found[0] as TenantLabels).texts];
    return [...new Set(found.flatMap(({ texts }) => texts))].sort();
  }

  /** Label sets of the streams that any of the selectors matches, by tenant. */
  async series(
    tenants: readonly string[],
    matches: readonly string[],
    range: TimeRange,
    signal: AbortSignal,
  ): Promise<readonly TenantStreams[]> {
    const request = this.#request(tenants, seriesSelectors(matches), range);
    if (request === undefined) return [];
    const { limits, ...asked } = request;
    return this.#keptList("seriesResult", limits, asked, signal, (bounded) =>
      this.#querier.streams(asked, { signal: bounded }),
    );
  }

  /**
   * Rows and bytes of streams by labels and time; undefined when none of that time may be looked at. Throws not_found
   * when the tenant may not ask for it, invalid_argument at more groups than it may have.
   */
  volume(
    tenants: readonly string[],
    plan: Omit<VolumePlan, "maxGroups">,
    signal: AbortSignal,
  ): Promise<VolumeAnswer | undefined> {
    const { volume_enabled, volume_max_series } = this.#limits(tenants);
    if (!volume_enabled) return Promise.reject(notFound("not found"));
    const maxGroups = volume_max_series || Number.MAX_SAFE_INTEGER;
    return this.#volumes("volumeResult", tenants, { ...plan, maxGroups }, signal);
  }

  /** Streams of a selector with rows in the range, and how much that is. */
  async indexStats(
    tenants: readonly string[],
    query: string,
    range: TimeRange,
    signal: AbortSignal,
  ): Promise<IndexStats> {
    const buckets = { firstNs: range.fromNs, stepNs: range.toNs - range.fromNs, count: 1 };
    const groupBy = { kind: "series", names: [] } as const;
    const matchers = parseSelector(query);
    const plan = { ...range, matchers, groupBy, buckets, maxGroups: 1, countsStreams: true };
    // One by one: streams of two tenants are two, also where their labels are the same.
    const answers = await Promise.all(
      tenants.map((tenant) => this.#volumes("statsResult", [tenant], plan, signal)),
    );
    const sum = (of: (answer: VolumeAnswer) => number) =>
      answers.reduce((all, answer) => all + (answer === undefined ? 0 : of(answer)), 0);
    return {
      streams: sum(({ streamCount }) => streamCount),
      chunks: sum(({ blocks }) => blocks),
      bytes: sum(({ bytes }) => Math.round(bytes[0] ?? 0)),
      entries: sum(({ rows }) => rows[0] ?? 0),
    };
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
      return this.#querier.query(request, { signal: own });
    };
    const attributes = { tenant: tenants.join("|"), "skald.query_hash": fnv1a32(text) };
    return traced("query", { attributes }, (span) =>
      this.#told(expr, params, span, () =>
        this.#withTimeout(limits, signal, (bounded) => {
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

  /** Names of labels, or values of one, of the streams of a selector, by tenant. */
  async #labels(
    tenants: readonly string[],
    { query, label }: { readonly query: string; readonly label?: string },
    range: TimeRange,
    signal: AbortSignal,
  ): Promise<readonly TenantLabels[]> {
    const request = this.#request(tenants, selectorsOf(query), range);
    if (request === undefined) return [];
    const { limits, ...asked } = request;
    const own = label === undefined ? asked : { ...asked, label };
    return this.#keptList("labelResult", limits, own, signal, (bounded) =>
      this.#querier.labels(own, { signal: bounded }),
    );
  }

  async #volumes(
    kind: "volumeResult" | "statsResult",
    tenants: readonly string[],
    plan: VolumePlan,
    signal: AbortSignal,
  ): Promise<VolumeAnswer | undefined> {
    const request = this.#request(tenants, [plan.matchers], plan);
    if (request === undefined) return undefined;
    const { limits, selectors: _, ...asked } = request;
    const own = { ...plan, ...asked };
    return this.#withTimeout(limits, signal, async (bounded) => {
      const ask = () => this.#querier.volumes(own, { signal: bounded });
      if (own.fromNs < oldestLasting(limits, { nowNs: this.nowNs() })) return ask();
      const mayKeep = ({ warnings }: VolumeAnswer) => warnings.length === 0;
      const cached = { tenants, range: own, asked: { ...own, actors: [] } };
      const { answer, caches, isKept } = await this.#kept.answer(
        kind,
        cached,
        ask,
        mayKeep,
        bounded,
      );
      const stats = isKept ? joinQueryStats([]) : answer.stats;
      return { ...answer, stats: { ...stats, caches } };
    });
  }

  /** Lists of labels or streams, kept or asked for. */
  #keptList<Answer>(
    kind: "seriesResult" | "labelResult",
    limits: QueryTenantLimits,
    asked: StreamsRequest,
    signal: AbortSignal,
    ask: (signal: AbortSignal) => Promise<Answer>,
  ): Promise<Answer> {
    return this.#withTimeout(limits, signal, async (bounded) => {
      if (asked.fromNs < oldestLasting(limits, { nowNs: this.nowNs() })) return ask(bounded);
      const cached = { tenants: asked.tenants, range: asked, asked: { ...asked, actors: [] } };
      return (
        await this.#kept.answer(
          kind,
          cached,
          () => ask(bounded),
          () => true,
          bounded,
        )
      ).answer;
    });
  }

  /** What to ask for streams in the time that may be looked at; undefined when none of it may be. */
  #request(
    tenants: readonly string[],
    selectors: readonly (readonly Matcher[])[],
    { fromNs, toNs }: TimeRange,
  ): (StreamsRequest & { readonly limits: QueryTenantLimits }) | undefined {
    const limits = this.#limits(tenants);
    const oldestNs = oldestAllowed(limits, this.nowNs());
    const startNs = fromNs < oldestNs ? oldestNs : fromNs;
    if (toNs <= oldestNs) return undefined;
    if (toNs <= startNs) throw noLongerAvailable(limits);
    checkLength(toNs - 1n - startNs, limits);
    return { tenants, selectors, fromNs: startNs, toNs, actors: this.#actors, limits };
  }

  #limits(tenants: readonly string[]): QueryTenantLimits {
    return combineLimits(tenants.map((tenant) => this.#limitsOf(tenant)));
  }

  async #withTimeout<T>(
    limits: QueryTenantLimits,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const message =
      "request timed out, decrease the duration of the request or add more label matchers (prefer exact match over regex match) to reduce the amount of data processed";
    const bounded = deadline({ timeoutMs: limits.query_timeout, message, signal });
    try {
      return await work(bounded.signal);
    } catch (error) {
      const reason: unknown = bounded.signal.reason;
      if (bounded.signal.aborted && reason instanceof SkaldError) throw reason;
      throw error;
    } finally {
      bounded.clear();
    }
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
