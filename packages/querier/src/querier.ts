import type {
  CallOptions,
  Catalog,
  Querier as Contract,
  Deletes,
  EncodedOutcome,
  ExplainedScan,
  ExplainRequest,
  HeldRows,
  QueryAnswer,
  QueryByteLimits,
  QueryKind,
  QueryRequest,
  QueryShare,
  ReplyOf,
  RequestOf,
  SegmentScanner,
  SourceRef,
  VolumeAnswer,
  VolumeOutcome,
  VolumePlan,
  VolumeRequest,
} from "@skald/contracts";
import {
  Budget,
  evaluate,
  keepsEveryRow,
  type LeafPlan,
  type LogPlan,
  type LogResult,
  type Memory,
  type MetricPlan,
  type QueryResult,
  type SeriesMatrix,
  tooManyBytesRead,
} from "@skald/logql";
import {
  errorCodeOf,
  type Matcher,
  type SegmentRef,
  type TimeRange,
  unavailable,
} from "@skald/model";
import { runConcurrently, withDeadline } from "@skald/runtime";
import { rangeOf, StreamHashes, VolumeCounts } from "@skald/scan";
import { type CorruptSegments, corruptWarnings } from "./find/corrupt-segments.js";
import { findChanges } from "./find/find-changes.js";
import type { PlannedSource } from "./find/order-sources.js";
import {
  type Found,
  type LeafCount,
  type Search,
  SourceFinder,
  type SourceFinderDeps,
  selectTenants,
} from "./find/source-finder.js";
import { estimateBytes, indexShare, KnownGrowths, TaskCutter } from "./run/cut-tasks.js";
import { explainScan, measureScan, type PlannedScan } from "./run/explain.js";
import type { Scanners } from "./run/left-out-rows.js";
import { runLogQuery } from "./run/log-query.js";
import { leafTasks, runLeaf } from "./run/metric-query.js";
import { QueryRun, shareOf } from "./run/query-run.js";
import { copies, maxOutcome, readsHeaders } from "./run/scan-room.js";
import { ListSizes, StreamLists } from "./run/stream-lists.js";

/** Bytes of lines that take as long to read as a row of an answer takes to be merged and written. */
const rowCost = 2048;
/** A row of an answer costs at most this many times the bytes that were read for it. */
const maxRowCost = 8;
export interface QuerierDeps {
  readonly ingester: HeldRows;
  readonly catalog: Catalog;
  /** Scans segments of the store. */
  readonly scanner: SegmentScanner<SegmentRef>;
  /** Scans that run at the same time. */
  readonly threads: number;
  readonly corrupt: CorruptSegments;
  /** Absent where nothing is ever deleted by request. */
  readonly deletes?: Deletes | undefined;
  /** Changes with every delete request of a tenant, and with what becomes of it. */
  readonly deletesOf?: (tenant: string) => string;
  /** Looks up sources where the services are, and keeps the views there; see `lookUp`. */
  readonly lookUp?: SourceFinderDeps["lookUp"];
  /** What another thread found for the query. Sources that are gone meanwhile are found again. */
  readonly found?: Found | undefined;
  /** Bounds of queries that share their thread; absent where queries of any size run. */
  readonly small?: SmallQueries | undefined;
  /** Both are shared by the queriers of a thread; each has its own if not given. */
  readonly listSizes?: ListSizes;
  readonly growths?: KnownGrowths;
  /** Whether a query is to stop in the middle of its work, when no signal can fire. */
  readonly shouldStop?: () => boolean;
  /** Counts what all queries hold together. */
  readonly memory?: Memory;
}

/** What a query may cost and hold where many small ones share a thread. */
export interface SmallQueries {
  /** Bytes of lines to be read, by estimate. */
  readonly maxCost: number;
  readonly maxHeldBytes: number;
  /** Queries that find little run here, too, however much their scans read. */
  readonly takesNarrow?: boolean;
  /** Takes over a query that is not small, with what was found for it; the query ends here with the error. */
  readonly moveOn: (found: Found) => Error;
}

/** The limits of requests that read headers only. */
const unlimited: QueryByteLimits = { maxBytesRead: 0, maxMemoryBytes: Number.MAX_SAFE_INTEGER };

const unlistedWarning = "the object store does not answer: only what ingesters hold was searched";

interface Selector {
  readonly range: TimeRange;
  readonly tenants: readonly string[];
  readonly matchers: readonly Matcher[];
}

/** Answers planned queries from ingesters and the store; the scans run where the data is. */
export class Querier implements Contract {
  readonly #deps: QuerierDeps;
  readonly #finder: SourceFinder;
  readonly #lists: StreamLists;
  readonly #scanners: Scanners;

  readonly #answers: {
    readonly [K in QueryKind]: (request: RequestOf<K>, signal: AbortSignal) => Promise<ReplyOf<K>>;
  } = {
    query: (request, signal) => this.#query(request, signal),
    streams: (request, signal) =>
      this.#search((search) => this.#lists.streams(request, search, signal)),
    labels: (request, signal) =>
      this.#search((search) => this.#lists.labels(request, search, signal)),
    volumes: (request, signal) => this.#volumes(request, signal),
    explain: (request, signal) => this.#explain(request, signal),
    changes: (request, signal) => findChanges(request, this.#deps, signal),
  };

  constructor(deps: QuerierDeps) {
    this.#deps = deps;
    this.#finder = new SourceFinder(deps);
    // On the side of the store there are no heads.
    this.#scanners = { ingester: deps.ingester, store: deps.scanner as SegmentScanner<SourceRef> };
    this.#lists = new StreamLists({
      ...{ finder: this.#finder, scanners: this.#scanners, threads: deps.threads },
      sizes: deps.listSizes ?? new ListSizes(),
      place: (cost, search) => this.#place(cost, search),
    });
  }

  /** Rejects with `cancelled` or the signal's reason soon after the signal fires. */
  run<K extends QueryKind>(
    kind: K,
    request: RequestOf<K>,
    { signal }: CallOptions,
  ): Promise<ReplyOf<K>> {
    return this.#answers[kind](request, signal);
  }

  #query(request: QueryRequest, signal: AbortSignal): Promise<QueryAnswer> {
    const { limits, tenants, plan } = request;
    return this.#search(async (search) => {
      search.share = shareOf(request);
      const run = this.#runOf(limits, search.share, search, signal);
      const result =
        plan.kind === "log"
          ? await this.#queryLog({ tenants, plan, search, run, signal })
          : await this.#queryMetric({ tenants, plan, search, run, signal });
      const warnings = [...result.warnings, ...warningsOf(search)];
      return { result: { ...result, warnings }, stats: run.stats(result) };
    });
  }

  #explain(request: ExplainRequest, signal: AbortSignal): Promise<ExplainedScan[]> {
    const { tenants, plan, maxMs } = request;
    return this.#search(async (search) => {
      search.share = shareOf(request);
      const run = this.#runOf(unlimited, search.share, search, signal);
      const query = { tenants, search, run, signal };
      const scans: readonly PlannedScan[] =
        plan.kind === "log"
          ? [await this.#findLog({ ...query, plan })]
          : await this.#findLeaves({ ...query, plan });
      const message = "not all headers were looked at";
      const found: ExplainedScan[] = [];
      await withDeadline({ timeoutMs: maxMs, message, signal }, async (within) => {
        for (const scan of scans) found.push(await explainScan(scan, run, { within, signal }));
      });
      // What only the store has is not known while it does not answer.
      return search.unlisted ? found.map((one) => ({ ...one, isExact: false })) : found;
    });
  }

  #volumes(request: VolumeRequest, signal: AbortSignal): Promise<VolumeAnswer> {
    const { tenants, matchers, actors: _, ...rest } = request;
    return this.#search(async (search) => {
      search.share = shareOf(request);
      const run = this.#runOf(unlimited, search.share, search, signal);
      const range = { fromNs: request.fromNs, toNs: request.toNs };
      const sources = await this.#list({ tenants, matchers, range }, search, signal);
      run.see(sources);
      run.book(estimateBytes(sources, range) / indexShare);
      this.#place(run.cost, search);
      const plan = { ...rest, matchers: ownMatchers(tenants, matchers) };
      const merge = new VolumeMerge(plan);
      const tasks = new TaskCutter(sources, {
        split: true,
        threads: run.threads,
        onlyHeaders: true,
      });
      await runConcurrently(tasks.take(), run.lanes, signal, async (task, stop) => {
        const outcome = await run.volumes(task, plan, stop);
        tasks.learn(task, outcome.stats);
        merge.add(outcome);
      });
      signal.throwIfAborted();
      return { ...merge.finish(), stats: run.stats(), warnings: warningsOf(search) };
    });
  }

  #runOf(
    limits: QueryByteLimits,
    share: QueryShare,
    search: Search,
    signal: AbortSignal,
  ): QueryRun {
    const {
      threads,
      small,
      memory,
      growths = new KnownGrowths(),
      shouldStop = () => signal.aborted,
    } = this.#deps;
    const { maxMemoryBytes } = limits;
    const budget = new Budget({
      shouldStop,
      ...(memory === undefined ? {} : { memory }),
      // Where only small queries run, one with a large answer is none.
      ...(small === undefined || small.maxHeldBytes >= maxMemoryBytes
        ? { maxBytes: maxMemoryBytes }
        : { maxBytes: small.maxHeldBytes, refuse: (cost) => small.moveOn(foundOf(cost, search)) }),
    });
    return new QueryRun({ limits, scanners: this.#scanners, threads, share, budget, growths });
  }

  /**
   * Ends a query that costs too much for this thread, and gives what was found to another. `outcomeBytes` is the
   * most that one scan finds.
   */
  #place(cost: number, search: Search, outcomeBytes = Number.POSITIVE_INFINITY): void {
    const { small } = this.#deps;
    if (small === undefined || cost <= small.maxCost) return;
    const isNarrow = outcomeBytes * copies <= small.maxHeldBytes;
    if (small.takesNarrow !== true || !isNarrow) throw small.moveOn(foundOf(cost, search));
  }

  /** Runs a query with a search of its own: again when segments moved, or turned out to be damaged, while it ran. */
  #search<T>(query: (search: Search) => Promise<T>): Promise<T> {
    let { found } = this.#deps;
    return this.#deps.corrupt.retry(() =>
      retryMoved(async (fresh) => {
        const { lists: known = [], missing = [] } = found ?? {};
        found = undefined;
        const search: Search = { fresh, views: [], missing: new Set(missing), known, lists: [] };
        try {
          return await query(search);
        } finally {
          await this.#finder.release(search);
        }
      }),
    );
  }

  async #queryLog(query: Query<LogPlan>): Promise<LogResult> {
    const { plan, search, run, signal } = query;
    const { plan: own, sources } = await this.#findLog(query);
    const range = rangeOf(plan);
    const bytes = estimateBytes(sources, range);
    run.book(Math.min(plan.limit * rowCost, bytes * maxRowCost));
    if (!keepsEveryRow(own)) run.book(bytes);
    this.#place(run.cost, search, maxOutcome(own));
    // A query without a filter and an interval reads as far as its limit goes, which headers do not show.
    if (!keepsEveryRow(own)) await refuseLarge([{ plan: own, sources }], run, signal);
    return runLogQuery(own, sources, run, signal);
  }

  async #findLog({ tenants, plan, search, run, signal }: Query<LogPlan>) {
    const { matchers } = plan.log;
    const asked = { tenants, matchers, range: rangeOf(plan) };
    const sources = await run.find(() => this.#list(asked, search, signal));
    run.see(sources);
    const own = { ...plan, log: { ...plan.log, matchers: ownMatchers(tenants, matchers) } };
    return { plan: own, sources };
  }

  async #queryMetric(query: Query<MetricPlan>): Promise<QueryResult> {
    const { plan, search, run, signal } = query;
    const leaves = await this.#findLeaves(query);
    const outcomes = leaves.map(({ plan }) => maxOutcome(plan));
    this.#place(run.cost, search, Math.max(0, ...outcomes));
    await refuseLarge(leaves, run, signal);
    const results = new Map<number, readonly SeriesMatrix[]>();
    for (const { plan: leaf, sources, counted } of leaves) {
      const tasks = leafTasks(leaf, sources, run);
      results.set(leaf.id, await runLeaf(leaf, { tasks, counted }, run, signal));
      signal.throwIfAborted();
    }
    return evaluate(plan, results, run.budget);
  }

  /** The leaves of a plan with their sources, less those that were counted without a scan. */
  async #findLeaves(query: Query<MetricPlan>): Promise<LeafScan[]> {
    const { tenants, plan, search, run, signal } = query;
    const listed = new Map<string | LeafCount, PlannedSource[]>();
    const leaves: LeafScan[] = [];
    for (const leaf of plan.leaves) {
      const { matchers } = leaf;
      const range = rangeOf(leaf);
      const own = { ...leaf, matchers: ownMatchers(tenants, matchers) };
      const count = this.#deps.catalog.count === undefined ? undefined : run.countOf(own);
      // Leaves of one selector and range look at the same sources, less those that were counted without a scan.
      const key = count ?? `${range.fromNs} ${range.toNs} ${JSON.stringify(matchers)}`;
      const sources =
        listed.get(key) ??
        (await run.find(() => this.#list({ tenants, matchers, range }, search, signal, count)));
      listed.set(key, sources);
      run.see(sources, count?.segments);
      leaves.push({ plan: own, sources, counted: count?.counted ?? [] });
      run.book(estimateBytes(sources, range) / (readsHeaders(leaf) ? indexShare : 1));
    }
    return leaves;
  }

  async #list(
    { range, tenants, matchers }: Selector,
    search: Search,
    signal: AbortSignal,
    count?: LeafCount,
  ): Promise<PlannedSource[]> {
    signal.throwIfAborted();
    if (range.fromNs >= range.toNs) return [];
    return this.#finder.listAll(selectTenants(tenants, matchers), range, search, signal, count);
  }
}

interface LeafScan {
  readonly plan: LeafPlan;
  readonly sources: PlannedSource[];
  readonly counted: readonly EncodedOutcome[];
}

interface Query<Plan> {
  readonly tenants: readonly string[];
  readonly plan: Plan;
  readonly search: Search;
  readonly run: QueryRun;
  readonly signal: AbortSignal;
}

/** What an answer lacks. */
function warningsOf({ missing, unlisted }: Search): string[] {
  return [...corruptWarnings(missing), ...(unlisted === true ? [unlistedWarning] : [])];
}

function foundOf(cost: number, { lists, missing }: Search): Found {
  return { cost, lists, missing: [...missing] };
}

/** The matchers that are left for streams: those on `__tenant_id__` have chosen the tenants. */
function ownMatchers(tenants: readonly string[], matchers: readonly Matcher[]) {
  return selectTenants(tenants, matchers)[0]?.matchers ?? matchers;
}

/** Refuses a query whose blocks hold more than it may read, before any is read. */
async function refuseLarge(
  scans: readonly PlannedScan[],
  run: QueryRun,
  signal: AbortSignal,
): Promise<void> {
  const { maxBytesRead } = run.limits;
  if (maxBytesRead === 0) return;
  let bytes = 0;
  for (const scan of scans) {
    await measureScan(scan, run, signal, (measured) => {
      bytes += measured.bytes;
    });
  }
  if (bytes > maxBytesRead) throw tooManyBytesRead(bytes, maxBytesRead);
}

/** Runs again, with a fresh listing, when a segment was gone: it moved, or was merged, since it was listed. */
async function retryMoved<T>(work: (fresh: boolean) => Promise<T>): Promise<T> {
  const isGone = (error: unknown) => errorCodeOf(error) === "not_found";
  try {
    return await work(false);
  } catch (error) {
    if (!isGone(error)) throw error;
  }
  try {
    return await work(true);
  } catch (error) {
    if (!isGone(error)) throw error;
    throw unavailable("segments of the query were replaced while it ran; try again", {
      cause: error,
    });
  }
}

/** Puts together what was counted in parts of the sources. Throws invalid_argument at too many groups. */
class VolumeMerge {
  readonly #counts: VolumeCounts;
  readonly #streams = new StreamHashes();
  #blocks = 0;
  #blockBytes = 0;

  constructor(plan: VolumePlan) {
    this.#counts = new VolumeCounts(plan);
  }

  add({ groups, group, bucket, rows, bytes, blocks, blockBytes, streams }: VolumeOutcome): void {
    const numbers = groups.map((labels) => this.#counts.groupOf(labels));
    for (let i = 0; i < group.length; i++) {
      this.#counts.add(numbers[group[i]!]!, bucket[i]!, rows[i]!, bytes[i]!);
    }
    for (let at = 0; at < streams.length; at += 2) {
      this.#streams.add(streams[at]!, streams[at + 1]!);
    }
    this.#blocks += blocks;
    this.#blockBytes += blockBytes;
  }

  finish(): Omit<VolumeAnswer, "stats" | "warnings"> {
    const [blocks, blockBytes] = [this.#blocks, this.#blockBytes];
    return { ...this.#counts.finish(), blocks, blockBytes, streamCount: this.#streams.count };
  }
}
