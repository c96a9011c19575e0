import {
  evaluate,
  type LeafPlan,
  type LogPlan,
  type LogResult,
  type MetricPlan,
  type Plan,
  type QueryResult,
  type SeriesMatrix,
} from "@skald/logql";
import {
  errorCodeOf,
  type Ingester,
  type Matcher,
  type QueryStats,
  unavailable,
} from "@skald/model";
import { keepsEveryRow, type Scanner, type TimeSpan } from "@skald/storage";
import type { PlannedSource } from "./find/order-sources.js";
import { type SegmentCatalog, SourceFinder } from "./find/source-finder.js";
import { selectTenants } from "./find/tenants.js";
import { type QueryByteLimits, tooManyBytesRead } from "./run/byte-limits.js";
import { runConcurrently } from "./run/concurrent.js";
import type { QueryTask } from "./run/cut-tasks.js";
import { logTasks, runLogQuery, spanOfLog } from "./run/log-query.js";
import { leafTasks, runLeaf, spanOfLeaf } from "./run/metric-query.js";
import { QueryRun, scanSource } from "./run/query-run.js";

export interface QueryRequest {
  /** Sorted, at least one. */
  readonly tenants: readonly string[];
  readonly plan: Plan;
  readonly limits: QueryByteLimits;
}

export interface QueryAnswer {
  readonly result: QueryResult | LogResult;
  readonly stats: QueryStats;
}

export interface StreamsRequest {
  readonly tenants: readonly string[];
  /** A stream counts when any selector matches; no selector means all streams. */
  readonly selectors: readonly (readonly Matcher[])[];
  /** Both inclusive, ns since the epoch. */
  readonly fromNs: bigint;
  readonly toNs: bigint;
}

export interface TenantStreams {
  readonly tenant: string;
  /** Canonical label texts, each once. */
  readonly texts: readonly string[];
}

/** Sources whose streams one job collects. */
const sourcesPerJob = 64;

/** Answers planned queries from ingesters and the store; the scans run on worker threads. */
export class Querier {
  readonly #finder: SourceFinder;
  readonly #scans: Scanner;

  constructor(deps: { ingester: Ingester; catalog: SegmentCatalog; scans: Scanner }) {
    this.#finder = new SourceFinder(deps);
    this.#scans = deps.scans;
  }

  /**
   * Runs a plan. Throws invalid_argument when it breaks a limit. Rejects with `cancelled` or the signal's reason soon
   * after the signal fires.
   */
  query(request: QueryRequest, signal: AbortSignal): Promise<QueryAnswer> {
    return retryMoved(async (fresh) => {
      const run = new QueryRun({ limits: request.limits, scans: this.#scans, fresh });
      const { tenants, plan } = request;
      const result =
        plan.kind === "log"
          ? await this.#queryLog(tenants, plan, run, signal)
          : await this.#queryMetric(tenants, plan, run, signal);
      return { result, stats: run.stats(result) };
    });
  }

  /** Streams of each tenant with rows in the range. */
  streams(request: StreamsRequest, signal: AbortSignal): Promise<TenantStreams[]> {
    return retryMoved((fresh) =>
      Promise.all(
        request.tenants.map(async (tenant) => ({
          tenant,
          texts: await this.#streamsOf(tenant, { ...request, fresh }, signal),
        })),
      ),
    );
  }

  async #streamsOf(
    tenant: string,
    { selectors, fromNs, toNs, fresh }: StreamsRequest & { readonly fresh: boolean },
    signal: AbortSignal,
  ): Promise<string[]> {
    const found = new Set<string>();
    const matchers = selectors.length === 1 ? (selectors[0] as readonly Matcher[]) : [];
    const sources = await this.#finder.list({ tenant, matchers, fromNs, toNs, fresh }, signal);
    const jobs = chunks(sources, sourcesPerJob);
    await runConcurrently(jobs, this.#scans.width, signal, async (job, stop) => {
      const task = { sources: job.map(({ ref }) => ref), selectors, fromNs, toNs };
      for (const text of await this.#scans.streams(task, stop)) found.add(text);
    });
    return [...found];
  }

  async #queryLog(
    tenants: readonly string[],
    plan: LogPlan,
    run: QueryRun,
    signal: AbortSignal,
  ): Promise<LogResult> {
    const selectors = selectTenants(tenants, plan.log.matchers);
    const sources = await this.#list(selectors, { ...spanOfLog(plan), fresh: run.fresh }, signal);
    run.see(sources);
    const log = { ...plan.log, matchers: selectors[0]?.matchers ?? plan.log.matchers };
    const own = { ...plan, log };
    const tasks = logTasks(own, sources, this.#scans.width);
    // A query without a filter reads as far as its limit goes, which headers do not show.
    if (!keepsEveryRow(own)) await refuseLarge([{ plan: own, tasks }], run, signal);
    return runLogQuery(own, tasks, run, signal);
  }

  async #queryMetric(
    tenants: readonly string[],
    plan: MetricPlan,
    run: QueryRun,
    signal: AbortSignal,
  ): Promise<QueryResult> {
    const listed = new Map<string, PlannedSource[]>();
    const leaves: { plan: LeafPlan; tasks: QueryTask[] }[] = [];
    for (const leaf of plan.leaves) {
      const selectors = selectTenants(tenants, leaf.matchers);
      const span = spanOfLeaf(leaf);
      // Leaves of one selector and range look at the same sources.
      const key = `${span.fromNs} ${span.toNs} ${JSON.stringify(leaf.matchers)}`;
      const sources =
        listed.get(key) ?? (await this.#list(selectors, { ...span, fresh: run.fresh }, signal));
      listed.set(key, sources);
      run.see(sources);
      const matchers = selectors[0]?.matchers ?? leaf.matchers;
      leaves.push({ plan: { ...leaf, matchers }, tasks: leafTasks(sources, this.#scans.width) });
    }
    await refuseLarge(leaves, run, signal);
    const results = new Map<number, SeriesMatrix>();
    for (const { plan: leaf, tasks } of leaves) {
      results.set(leaf.id, await runLeaf(leaf, tasks, run, signal));
      signal.throwIfAborted();
    }
    return evaluate(plan, results);
  }

  async #list(
    selectors: ReturnType<typeof selectTenants>,
    span: TimeSpan & { readonly fresh: boolean },
    signal: AbortSignal,
  ): Promise<PlannedSource[]> {
    signal.throwIfAborted();
    return span.fromNs > span.toNs ? [] : this.#finder.listAll(selectors, span, signal);
  }
}

/** Refuses a query whose blocks hold more than it may read, before any is read. */
async function refuseLarge(
  scans: readonly { readonly plan: LeafPlan | LogPlan; readonly tasks: readonly QueryTask[] }[],
  { limits, lanes, scans: scanner }: QueryRun,
  signal: AbortSignal,
): Promise<void> {
  const { maxBytesRead } = limits;
  if (maxBytesRead === 0) return;
  let bytes = 0;
  for (const { plan, tasks } of scans) {
    await runConcurrently(tasks, lanes, signal, async (task, stop) => {
      const sources = task.sources.map(({ source, part }) => scanSource(source, part));
      const measured = await scanner.measure({ plan, sources }, stop);
      bytes += measured;
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

function chunks<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) =>
    items.slice(i * size, (i + 1) * size),
  );
}
