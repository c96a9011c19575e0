import {
  evaluate,
  type LeafPlan,
  type LogPlan,
  type LogResult,
  type MetricPartial,
  type MetricPlan,
  mergeMetricPartials,
  type Plan,
  type QueryResult,
  type SeriesMatrix,
} from "@skald/logql";
import {
  addReadStats,
  emptyReadStats,
  type Ingester,
  type Matcher,
  type QueryStats,
  type ReadStats,
} from "@skald/model";
import type { ScanPool, ScanTask } from "@skald/storage";
import { runConcurrently } from "./concurrent.js";
import { LogMerge } from "./log-merge.js";
import { type SegmentCatalog, SourceFinder } from "./source-finder.js";
import type { PlannedSource } from "./sources.js";
import { selectTenants, type TenantSelector } from "./tenants.js";

export interface QueryRequest {
  /** Sorted, at least one. */
  readonly tenants: readonly string[];
  readonly plan: Plan;
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

/** Scans in flight per thread: one runs, one waits, so that no thread idles between two. */
const tasksPerThread = 2;

/** Answers planned queries from ingesters and the store; the scans run on worker threads. */
export class Querier {
  readonly #finder: SourceFinder;
  readonly #scans: ScanPool;

  constructor(deps: { ingester: Ingester; catalog: SegmentCatalog; scans: ScanPool }) {
    this.#finder = new SourceFinder(deps);
    this.#scans = deps.scans;
  }

  /** Runs a plan. Rejects with `cancelled` or the signal's reason soon after the signal fires. */
  async query(request: QueryRequest, signal: AbortSignal): Promise<QueryAnswer> {
    const start = performance.now();
    const run = new Run();
    const result =
      request.plan.kind === "log"
        ? await this.#queryLog(request.tenants, request.plan, run, signal)
        : await this.#queryMetric(request.tenants, request.plan, run, signal);
    return { result, stats: run.stats((performance.now() - start) / 1000, result) };
  }

  /** Streams of each tenant with rows in the range. */
  async streams(request: StreamsRequest, signal: AbortSignal): Promise<TenantStreams[]> {
    const { selectors, fromNs, toNs } = request;
    return Promise.all(
      request.tenants.map(async (tenant) => {
        const found = new Set<string>();
        const matchers = selectors.length === 1 ? (selectors[0] as readonly Matcher[]) : [];
        const sources = await this.#finder.list({ tenant, matchers, fromNs, toNs }, signal);
        await runConcurrently(
          batches(sources, this.#scans.width),
          this.#scans.width,
          signal,
          async (batch, stop) => {
            const task = { sources: batch.map(({ ref }) => ref), selectors, fromNs, toNs };
            for (const text of await this.#scans.streams(task, stop)) found.add(text);
          },
        );
        return { tenant, texts: [...found] };
      }),
    );
  }

  async #queryMetric(
    tenants: readonly string[],
    plan: MetricPlan,
    run: Run,
    signal: AbortSignal,
  ): Promise<QueryResult> {
    const results = new Map<number, SeriesMatrix>();
    for (const leaf of plan.leaves) {
      results.set(leaf.id, await this.#scanLeaf(tenants, leaf, run, signal));
    }
    return evaluate(plan, results);
  }

  async #scanLeaf(
    tenants: readonly string[],
    leaf: LeafPlan,
    run: Run,
    signal: AbortSignal,
  ): Promise<SeriesMatrix> {
    const range = { fromNs: leaf.fromNs + 1n, toNs: leaf.toNs };
    const work = await this.#work(tenants, leaf.matchers, range, run, signal);
    const partials: MetricPartial[] = new Array(work.length);
    await runConcurrently(
      work.entries(),
      this.#lanes(),
      signal,
      async ([i, { source, selector }], stop) => {
        const task = {
          ...taskOf(source, selector),
          plan: { ...leaf, matchers: selector.matchers },
        };
        const outcome = await this.#scans.scanMetric(task, stop);
        run.add(source, outcome.stats, outcome.streams);
        partials[i] = outcome.partial;
      },
    );
    return mergeMetricPartials(leaf, partials);
  }

  async #queryLog(
    tenants: readonly string[],
    plan: LogPlan,
    run: Run,
    signal: AbortSignal,
  ): Promise<LogResult> {
    const range = { fromNs: plan.fromNs, toNs: plan.toNs - 1n };
    const work = await this.#work(tenants, plan.log.matchers, range, run, signal);
    const backward = plan.direction === "backward";
    const best = ({ source }: Work) => (backward ? source.ref.maxNs : source.ref.minNs);
    work.sort((a, b) => (best(a) === best(b) ? 0 : best(a) < best(b) === backward ? 1 : -1));
    const merge = new LogMerge(plan);
    await runConcurrently(work, this.#lanes(), signal, async (item, stop) => {
      const boundNs = merge.boundNs();
      if (boundNs !== undefined && (backward ? best(item) < boundNs : best(item) > boundNs)) return;
      const log = { ...plan.log, matchers: item.selector.matchers };
      const bound = boundNs === undefined ? {} : { boundNs };
      const task = { ...taskOf(item.source, item.selector), plan: { ...plan, log }, ...bound };
      const outcome = await this.#scans.scanLog(task, stop);
      run.add(item.source, outcome.stats, outcome.streams);
      merge.add(outcome.partial, item.source.sequence);
    });
    return merge.result();
  }

  #lanes(): number {
    return this.#scans.width * tasksPerThread;
  }

  /** The sources of every tenant that the selector names. */
  async #work(
    tenants: readonly string[],
    matchers: readonly Matcher[],
    range: { readonly fromNs: bigint; readonly toNs: bigint },
    run: Run,
    signal: AbortSignal,
  ): Promise<Work[]> {
    if (range.fromNs > range.toNs) return [];
    const found = await Promise.all(
      selectTenants(tenants, matchers).map(async (selector) => {
        const request = { tenant: selector.tenant, matchers: selector.matchers, ...range };
        const sources = await this.#finder.find(request, signal);
        return sources.map((source) => ({ source, selector }));
      }),
    );
    const work = found.flat();
    for (const { source } of work) run.see(source);
    return work;
  }
}

interface Work {
  readonly source: PlannedSource;
  readonly selector: TenantSelector;
}

function taskOf(source: PlannedSource, selector: TenantSelector): Omit<ScanTask, "plan"> {
  const label = selector.tenantLabel === undefined ? {} : { tenantLabel: selector.tenantLabel };
  return { source: source.ref, sequence: source.sequence, exclusions: source.exclusions, ...label };
}

/** Sources dealt out evenly, one batch per thread. */
function batches(sources: readonly PlannedSource[], width: number): PlannedSource[][] {
  const dealt = Array.from({ length: Math.min(width, sources.length) }, (): PlannedSource[] => []);
  sources.forEach((source, i) => {
    dealt[i % dealt.length]?.push(source);
  });
  return dealt;
}

/** Adds up what the scans of one query report. */
class Run {
  readonly #ingester = emptyReadStats();
  readonly #store = emptyReadStats();
  #streams = 0;
  #shards = 0;

  see(source: PlannedSource): void {
    this.#side(source).sources++;
  }

  add(source: PlannedSource, stats: ReadStats, streams: number): void {
    addReadStats(this.#side(source), stats);
    this.#streams = Math.max(this.#streams, streams);
    this.#shards++;
  }

  stats(execSeconds: number, result: QueryResult | LogResult): QueryStats {
    const entriesReturned = result.kind === "streams" ? result.rowCount : 0;
    return {
      ingester: this.#ingester,
      store: this.#store,
      ingestersReached: 1,
      streams: this.#streams,
      execSeconds,
      queueSeconds: 0,
      entriesReturned,
      splits: 1,
      shards: this.#shards,
    };
  }

  #side(source: PlannedSource): ReadStats {
    return source.side === "ingester" ? this.#ingester : this.#store;
  }
}
