import { availableParallelism, hostname } from "node:os";
import { join } from "node:path";
import { Compactor, type DeleteRequests, type RemovalRules } from "@skald/compactor";
import type { Catalog, Scanner } from "@skald/contracts";
import { createDistributorMetrics, Distributor } from "@skald/distributor";
import { patternRoutes, queryRoutes, TailEndpoints } from "@skald/frontend";
import { Ingester } from "@skald/ingester";
import type { RawPush } from "@skald/kernels";
import { type SegmentLocation, steadyClock, systemClock } from "@skald/model";
import { type PatternSetup, PatternThread } from "@skald/patterns";
import { CorruptSegments, Querier } from "@skald/querier";
import { Ruler, ruleRoutes, ruleStatusRoutes } from "@skald/ruler";
import { type BuildInfo, type Logger, MemoryBudget, Service, WorkerPool } from "@skald/runtime";
import { TenantLimits } from "@skald/runtime/config";
import type { Metrics } from "@skald/runtime/metrics";
import { type FreshRows, RemoteScanner, ScanPool, type TailFound, urgentBytes } from "@skald/scan";
import { FairQueue } from "@skald/scheduler";
import {
  type LocalRef,
  type ObjectStore,
  type SealedSegment,
  SegmentCatalog,
} from "@skald/storage";
import type { RawHandler, Route, SocketRoute } from "@skald/transport";
import type { Config } from "../config/root.js";
import { drilldownRoutes } from "../http/drilldown-routes.js";
import { operatorRoutes, ShutdownMarker } from "../http/operator-routes.js";
import { pushRoutes } from "../http/push-routes.js";
import { ringRoutes } from "../http/ring-routes.js";
import { memoryBytes } from "../memory.js";
import { queryObserver } from "../query/metrics.js";
import { QueryThreads, type QueryThreadsOptions } from "../query/query-threads.js";
import { hostOf } from "../query/remote.js";
import { compactionThreads, decodeIndex } from "./compaction-threads.js";
import { buildDeletion } from "./deletion.js";
import { ingesterOptionsOf } from "./ingester-options.js";
import { buildObjectStore } from "./object-store.js";
import { buildIngesterRing, buildServiceRing } from "./rings.js";
import { buildRuleStore, ruleQuerier } from "./rules.js";
import { segmentStore } from "./segment-store.js";
import { timedCatalog } from "./store-metrics.js";
import type { ModuleName } from "./targets.js";

/** What every module of the process is built from. */
export interface ModuleContext {
  readonly config: Config;
  readonly log: Logger;
  readonly build: BuildInfo;
  readonly metrics: Metrics;
}

/** What a module adds to the process beside the objects that later ones take. */
export interface BuiltModule {
  /** Its life; one that only lives from call to call needs none. */
  readonly service?: Service;
  /** Why it can do no work now although its service runs. */
  readonly unready?: () => string | undefined;
  readonly routes?: readonly Route[];
  readonly rawRoutes?: ReadonlyMap<string, RawHandler>;
  readonly socketRoutes?: readonly SocketRoute[];
}

/** The objects of the process by module; each is there once its module was built. */
interface Parts {
  limits: TenantLimits;
  pool: WorkerPool;
  /** Scans what is on this machine. */
  threads: ScanPool;
  /** Scans the store's segments too. */
  scanner: Scanner<LocalRef>;
  store: ObjectStore;
  /** Where the bytes of a key are. */
  locate: (key: string) => SegmentLocation;
  catalog: Catalog;
  /** Absent where no patterns are looked for. */
  patterns: PatternThread | undefined;
  follow: ((rows: FreshRows) => Promise<void>) | undefined;
  ingester: Ingester;
  /** Absent where nothing is ever deleted by request. */
  deletes: DeleteRequests | undefined;
  /** What is to leave the store; absent where nothing is. */
  removalRules: RemovalRules | undefined;
  queries: Pick<
    QueryThreadsOptions,
    "pool" | "querier" | "host" | "hidesRows" | "memory" | "threads"
  >;
  frontend: QueryThreads;
}

type Builder = (parts: Parts, context: ModuleContext) => BuiltModule;

/** Builds modules in the order given: the only place that knows that a contract is a method call here. */
export function buildModules(
  names: readonly ModuleName[],
  context: ModuleContext,
): readonly BuiltModule[] {
  // Filled by the builders; the table of targets.ts has each after those that it needs.
  const parts = {} as Parts;
  return names.map((name) => builders[name](parts, context));
}

const builders: Readonly<Record<ModuleName, Builder>> = {
  "runtime-config": buildLimits,
  "worker-pool": buildPool,
  store: buildStore,
  "pattern-ingester": buildPatterns,
  ingester: buildIngester,
  deletion: buildDeletes,
  distributor: buildDistributor,
  querier: buildQuerier,
  "query-frontend": buildFrontend,
  compactor: buildCompactor,
  "service-rings": buildServiceRings,
  ruler: buildRuler,
};

/** Jobs that may wait for a thread before queries are refused. */
const maxQueuedJobs = 100_000;
/** Small jobs that one thread has in hand at the same time. */
const maxSmallQueries = 64;
/** What a query may hold where requests come in: putting more together would hold up others. */
const maxHeldHere = 512 * 1024;
/** Heap of a query thread; a query that needs more ends with its thread. */
const maxQueryHeapMib = 512;
/** Memory that idle threads keep; scans have use for what they read before. */
const maxKeptMib = { query: 64, scan: 128 };
/** A part of the memory that queries may hold together when nobody says. */
const shareOfQueries = 8;
const maxQueryMemory = 512 * 1024 * 1024;
/** Lines of a second that patterns are looked for in; of more, each stands for several. */
const maxPatternLines = 4_000;
const maxQueuedPatternJobs = 1000;
const maxPatternHeapMib = 512;
const maxMinersPerTenant = 2000;
const maxPatternTenants = 100;
/** Scans of small queries, and decoding of pushes, take turns on one thread. */
const urgentScans = 1;

function buildLimits(parts: Parts, { config, log, metrics }: ModuleContext): BuiltModule {
  parts.limits = new TenantLimits({
    limits: config.limits_config,
    files: config.runtime_config.file,
    periodMs: config.runtime_config.period,
    log,
    metrics,
  });
  return { service: parts.limits.service };
}

function buildPool(parts: Parts, { config, log, metrics }: ModuleContext): BuiltModule {
  const { worker_threads } = config.server;
  const lost = metrics.counter("worker_threads_lost_total", "Threads that died and were replaced.");
  const pool = new WorkerPool({
    url: new URL("../worker.js", import.meta.url),
    size: worker_threads > 0 ? worker_threads : availableParallelism(),
    urgentJobs: urgentScans,
    lazy: true,
    maxQueued: maxQueuedJobs,
    maxKeptMib: maxKeptMib.scan,
    queues: {
      query: new FairQueue({ maxLevels: config.query_scheduler.max_queue_hierarchy_levels }),
    },
    onThreadLost: (error) => {
      lost.inc();
      log.error("a worker thread died; another takes its place", { error });
    },
  });
  parts.pool = pool;
  parts.threads = new ScanPool(pool);
  parts.scanner = parts.threads;
  return { service: new Service({ name: "worker-pool", stop: () => pool.close() }) };
}

function buildStore(parts: Parts, { config, log, metrics }: ModuleContext): BuiltModule {
  const { scanner } = parts;
  const { store, locate, cache, service } = buildObjectStore({
    config,
    log: log.child({ component: "store" }),
    metrics,
    onDropped: (path) => parts.threads.forget(path),
  });
  parts.store = store;
  parts.locate = locate;
  const failures = metrics.counter("store_listing_failures_total", "Listings that failed.");
  const corrupt = metrics.counter("store_corrupt_indexes_total", "Damaged day indexes.");
  const catalog = new SegmentCatalog({
    ...{ store, locate, clock: steadyClock },
    decodeIndex: (name, bytes) => decodeIndex(parts.pool, name, bytes),
    onCorruptIndex: (error, key) => {
      corrupt.inc();
      log.error("a day index is damaged; the one before it is used", { key, error });
    },
    onListFailure: (error, prefix) => {
      failures.inc();
      log.warn("the store cannot be listed; an older listing still serves", { prefix, error });
    },
  });
  parts.catalog = timedCatalog(catalog, metrics);
  if (cache !== undefined) parts.scanner = new RemoteScanner({ scanner, cache });
  return { service };
}

function buildIngester(parts: Parts, { config, log, metrics }: ModuleContext): BuiltModule {
  const { limits, follow, pool, scanner, store, threads } = parts;
  const { options, warnings } = ingesterOptionsOf(
    config,
    config.ingester.lifecycler.id || hostname(),
  );
  for (const warning of warnings) log.warn(warning);
  const ingester = new Ingester({
    options,
    limitsOf: (tenant) => limits.of(tenant),
    store: segmentStore(store),
    scanner,
    runTails: (task, { signal, tenant, bytes }) => {
      const share = { tenant, actors: [], cost: bytes * task.tails.length };
      return pool.run<TailFound[]>("tail", task, { lane: "query", share, signal });
    },
    ...(follow === undefined ? {} : { follow }),
    onDropped: (path) => threads.forget(path),
    seal: (job) => pool.run<SealedSegment>("seal", job, { lane: "background" }),
    clock: systemClock,
    log: log.child({ component: "ingester" }),
    metrics,
  });
  parts.ingester = ingester;
  const marker = new ShutdownMarker(config.ingester.shutdown_marker_path);
  const own = buildIngesterRing({ config, log });
  const service = new Service({
    name: "ingester",
    start: async (signal) => {
      await own.start();
      await ingester.start(signal);
      await own.join(signal);
    },
    run: (signal) => ingester.run(signal),
    stop: async () => {
      await own.leave();
      await ingester.stop(marker.isSet() ? { flush: true } : {});
      await own.stop();
    },
  });
  return {
    service,
    unready: () => ingester.unready ?? own.ring.unready,
    routes: [
      ...operatorRoutes(ingester, marker),
      ...ringRoutes({ paths: ["/ring"], title: "Ingester ring", ring: own.ring }),
    ],
  };
}

function buildDeletes(parts: Parts, { config, log, metrics }: ModuleContext): BuiltModule {
  const { deletes, rules, ...built } = buildDeletion({
    ...{ ...parts, config, metrics, tenancy: tenancyOf(config) },
    log: log.child({ component: "compactor" }),
  });
  parts.deletes = deletes;
  parts.removalRules = rules;
  return built;
}

function buildPatterns(parts: Parts, { config, log, metrics }: ModuleContext): BuiltModule {
  if (!config.pattern_ingester.enabled) return {};
  const lines = metrics.counter(
    "pattern_lines_total",
    "Lines that came in while patterns are found.",
  );
  const looked = metrics.counter(
    "pattern_looked_lines_total",
    "Lines that were looked at for that.",
  );
  const patterns = new PatternThread({
    pool: new WorkerPool({
      url: new URL("../patterns-worker.js", import.meta.url),
      size: 1,
      lazy: true,
      maxQueued: maxQueuedPatternJobs,
      maxHeapMib: maxPatternHeapMib,
      onThreadLost: (error) => log.error("the thread of patterns died", { error }),
    }),
    setup: patternSetupOf(config),
    savePeriodMs: config.pattern_ingester.flush_check_period,
    onLearnt: (seen, rows) => {
      looked.inc(seen);
      lines.inc(rows);
    },
    onError: (error) => log.error("patterns cannot be saved", { error }),
  });
  parts.patterns = patterns;
  const { limits } = parts;
  parts.follow = (rows) => patterns.learn(rows, messageFieldsOf(limits.of(rows.tenant)));
  const service = new Service({
    name: "pattern-ingester",
    start: async () => patterns.start(),
    stop: () => patterns.stop(),
  });
  return { service };
}

function messageFieldsOf(limits: ReturnType<TenantLimits["of"]>): string[] {
  const { pattern_ingester_tokenizable_json_fields_delete: deleted } = limits;
  return [
    ...limits.pattern_ingester_tokenizable_json_fields_default,
    ...limits.pattern_ingester_tokenizable_json_fields_append,
  ].filter((name) => !deleted.includes(name));
}

function patternSetupOf({ pattern_ingester, common }: Config): PatternSetup {
  return {
    path: join(common.path_prefix, "patterns", "patterns.bin"),
    options: {
      maxClusters: pattern_ingester.max_clusters,
      maxEvictionRatio: pattern_ingester.max_eviction_ratio,
      maxLineBytes: pattern_ingester.max_allowed_line_length,
      retainMs: pattern_ingester.retain_for,
      sampleMs: pattern_ingester.pattern_sample_interval,
      maxLines: maxPatternLines,
      maxMinersPerTenant,
      maxTenants: maxPatternTenants,
    },
  };
}

function buildDistributor(
  { ingester, limits, pool }: Parts,
  { config, log, metrics }: ModuleContext,
): BuiltModule {
  const distributor = new Distributor({
    ingester,
    ingesterName: "all",
    limitsOf: (tenant) => limits.of(tenant),
    metrics: createDistributorMetrics(metrics),
    clock: systemClock,
    otlpIndexLabels: config.distributor.otlp_config.default_resource_attributes_as_index_labels,
    maxDecompressedBytes: config.distributor.max_decompressed_size,
    decodeInWorker: (input, maxBytes) =>
      pool.run<RawPush>("decode_push", { input, maxBytes }, { lane: "urgent" }),
    onFailure: (error, tenant) => log.error("push failed", { tenant, error }),
  });
  const own = buildServiceRing("distributor", config.distributor.ring, { log });
  const service = new Service({
    name: "distributor",
    start: async (signal) => {
      await own.start();
      await own.join(signal);
    },
    stop: () => own.stop(),
  });
  return {
    service,
    rawRoutes: pushRoutes(config, distributor, tenancyOf(config)),
    routes: ringRoutes({ paths: ["/distributor/ring"], title: "Distributor ring", ring: own.ring }),
  };
}

function buildQuerier(parts: Parts, { config, log, metrics }: ModuleContext): BuiltModule {
  const { ingester, catalog, scanner, pool, deletes } = parts;
  const { max_concurrent, max_query_memory } = config.querier;
  const lost = metrics.counter("query_threads_lost_total", "Query threads that died.");
  const memory = new MemoryBudget(
    max_query_memory || Math.min(maxQueryMemory, memoryBytes() / shareOfQueries),
  );
  const held = "Memory that queries hold, by their own count.";
  metrics.gaugeOf("query_memory_bytes", held, () => memory.bytes);
  const threads = new WorkerPool({
    url: new URL("../query/query-worker.js", import.meta.url),
    size: max_concurrent,
    urgentJobs: maxSmallQueries,
    lazy: true,
    maxQueued: maxQueuedJobs,
    maxHeapMib: maxQueryHeapMib,
    maxKeptMib: maxKeptMib.query,
    queues: fairQueues(config, memory),
    onThreadLost: (error) => {
      lost.inc();
      log.error("a query thread died; another takes its place", { error });
    },
  });
  const help = "Segments that queries found damaged and left out.";
  const corrupt = metrics.counter("querier_corrupt_segments_total", help);
  const onCorrupt = (segment: string) => {
    corrupt.inc();
    log.error("a segment is damaged; queries leave it out", { segment });
  };
  parts.queries = {
    pool: threads,
    memory,
    threads: pool.size,
    hidesRows: (tenant) => deletes?.hidesRows(tenant) ?? false,
    querier: new Querier({
      ...{ ingester, catalog, scanner, deletes, threads: pool.size },
      corrupt: new CorruptSegments({ clock: steadyClock, onFound: onCorrupt }),
      maxCost: urgentBytes,
      maxHeldBytes: maxHeldHere,
      onlySimple: true,
    }),
    host: {
      ...hostOf({ ingester, catalog, scanner, deletes }),
      corrupt: (segment: string) => {
        onCorrupt(segment);
        return { value: undefined };
      },
    },
  };
  return { service: new Service({ name: "querier", stop: () => threads.close() }) };
}

function buildFrontend(parts: Parts, { build, config, metrics }: ModuleContext): BuiltModule {
  const { queries, limits, ingester, patterns } = parts;
  const routes = {
    ...tenancyOf(config),
    multiTenantQueries: config.querier.multi_tenant_queries_enabled,
    parquetAnswers: config.frontend.support_parquet_encoding,
    alignToStep: config.query_range.align_queries_with_step,
  };
  const threads = new QueryThreads({
    ...queries,
    onQuery: queryObserver(metrics),
    limitsOf: (tenant) => limits.of(tenant),
    routes,
  });
  parts.frontend = threads;
  const drilldown = drilldownRoutes({
    ...tenancyOf(config),
    limitsOf: (tenant) => limits.of(tenant),
    published: config.tenant_limits_allow_publish,
    patternsEnabled: () => config.pattern_ingester.enabled,
    version: build.version,
  });
  const tails = new TailEndpoints({
    ...tenancyOf(config),
    ingester,
    history: (request) => threads.serve("tail_history", request),
    maxTailsOf: (tenant) => limits.of(tenant).max_concurrent_tail_requests,
    maxDurationMs: config.querier.tail_max_duration,
    clock: systemClock,
  });
  const queried = queryRoutes((endpoint, request) => threads.serve(endpoint, request));
  return {
    routes: [
      ...queried,
      ...tails.routes,
      ...patternRoutes({ ...routes, patterns, clock: systemClock }),
      ...drilldown,
    ],
    socketRoutes: tails.socketRoutes,
  };
}

function buildCompactor(
  { store, locate, pool, removalRules, threads: scans }: Parts,
  { config, log, metrics }: ModuleContext,
): BuiltModule {
  const { threads, close } = compactionThreads({
    size: config.compactor.max_compaction_parallelism,
    isBusy: () => pool.busy > 0,
    log,
  });
  const compactor = new Compactor({
    ...{ store, locate, threads, metrics, config: config.compactor, clock: systemClock },
    log: log.child({ component: "compactor" }),
    onDeleted: (key) => {
      const location = locate(key);
      if (location.kind === "file") scans.forget(location.path);
    },
    rules: removalRules,
  });
  const service = new Service({
    name: "compactor",
    start: () => compactor.start(),
    stop: async () => {
      await compactor.stop();
      await close();
    },
  });
  return { service };
}

/** Rings of services that have no module of their own to keep them, or need none of theirs yet. */
function buildServiceRings(_parts: Parts, { config, log }: ModuleContext): BuiltModule {
  const rings = [
    { name: "compactor", block: config.compactor.compactor_ring },
    // As long as these are part of every process they are kept as its distributor is.
    { name: "ruler", block: config.distributor.ring },
    { name: "scheduler", block: config.distributor.ring },
  ].map(({ name, block }) => ({ name, own: buildServiceRing(name, block, { log }) }));
  const service = new Service({
    name: "service-rings",
    start: async (signal) => {
      for (const { own } of rings) {
        await own.start();
        await own.join(signal);
      }
    },
    stop: async () => {
      for (const { own } of rings) await own.stop();
    },
  });
  const title = (name: string) => `${name.charAt(0).toUpperCase()}${name.slice(1)} ring`;
  const routes = rings.flatMap(({ name, own }) =>
    ringRoutes({ paths: [`/${name}/ring`], title: title(name), ring: own.ring }),
  );
  return { service, routes };
}

function buildRuler(parts: Parts, { config, log: root, metrics }: ModuleContext): BuiltModule {
  const { frontend, limits } = parts;
  const log = root.child({ component: "ruler" });
  const limitsOf = (tenant: string) => limits.of(tenant);
  const { store, files } = buildRuleStore(config, parts.store, log);
  const ruler = new Ruler({
    ...{ config: config.ruler, store, limitsOf, clock: systemClock, log, metrics },
    querier: ruleQuerier(config, limitsOf, (request) => frontend.serve("query", request)),
  });
  const service = new Service({
    name: "ruler",
    start: async () => {
      await files?.open();
      await ruler.start();
    },
    run: (signal) => ruler.run(signal),
    stop: async () => {
      await ruler.stop();
      await files?.close();
    },
  });
  const tenancy = tenancyOf(config);
  const rules = config.ruler.enable_api ? ruleRoutes(ruler, tenancy) : [];
  return { service, routes: [...rules, ...ruleStatusRoutes(ruler, tenancy)] };
}

/** Queries wait in their tenant's turn, and so do the scans of them. */
function fairQueues({ query_scheduler }: Config, memory: MemoryBudget) {
  const maxLevels = query_scheduler.max_queue_hierarchy_levels;
  const maxOutstandingPerTenant = query_scheduler.max_outstanding_requests_per_tenant;
  return {
    urgent: new FairQueue({ maxLevels, maxOutstandingPerTenant }),
    // Where memory is scarce a query has it already: the next begins when that ends.
    query: new FairQueue({ maxLevels, maxOutstandingPerTenant, isHeld: () => memory.isScarce }),
  };
}

function tenancyOf(config: Config) {
  return { authEnabled: config.auth_enabled, noAuthTenant: config.no_auth_tenant };
}
