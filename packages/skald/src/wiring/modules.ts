import { mkdirSync } from "node:fs";
import { availableParallelism, hostname } from "node:os";
import { join } from "node:path";
import { createDistributorMetrics, Distributor } from "@skald/distributor";
import { Frontend, queryRoutes } from "@skald/frontend";
import { Ingester } from "@skald/ingester";
import type { RawPush } from "@skald/kernels";
import { systemClock } from "@skald/model";
import { CorruptSegments, Querier } from "@skald/querier";
import {
  type BuildInfo,
  type Logger,
  type NamedState,
  Service,
  ServiceGroup,
  WorkerPool,
} from "@skald/runtime";
import { TenantLimits } from "@skald/runtime/config";
import { Metrics } from "@skald/runtime/metrics";
import { ScanPool } from "@skald/scan";
import { FsStore, type SealedSegment, SegmentCatalog } from "@skald/storage";
import { HttpServer } from "@skald/transport";
import { configToYaml } from "../config/load-config.js";
import { keyNotes } from "../config/notes.js";
import type { Config } from "../config/root.js";
import { operatorRoutes } from "../http/operator-routes.js";
import { pushRoutes } from "../http/push-routes.js";
import { requestObserver } from "../http/request-metrics.js";
import { statusRoutes } from "../http/status-routes.js";
import { ingesterLimitsOf, ingesterOptionsOf } from "./ingester-options.js";
import { pushLimitsOf, queryLimitsOf } from "./limits.js";
import { segmentStore } from "./segment-store.js";

export interface ProcessDeps {
  readonly config: Config;
  readonly log: Logger;
  readonly build: BuildInfo;
}

/** A process made of services, ready to start. */
export interface RunningProcess {
  /** Resolves with the HTTP port once everything runs. */
  start(): Promise<number>;
  stop(): Promise<void>;
  firstFailure(): Promise<{ name: string; error: unknown }>;
}

/** Jobs that may wait for a thread before queries are refused. */
const maxQueuedJobs = 100_000;

/**
 * The composition root: builds every object of the process, gives each what it needs, and lists the services with what
 * they wait for. The only place that knows that a contract is a method call here.
 */
export function buildProcess({ config, log, build }: ProcessDeps): RunningProcess {
  const metrics = new Metrics({ namespace: config.metrics_namespace });
  metrics.collectProcess(build);
  const limits = new TenantLimits({
    limits: config.limits_config,
    files: config.runtime_config.file,
    periodMs: config.runtime_config.period,
    notes: keyNotes,
    log,
    metrics,
  });
  const parts = buildParts({ config, log, metrics, limits });
  const tenancy = { authEnabled: config.auth_enabled, noAuthTenant: config.no_auth_tenant };
  const states = (): readonly NamedState[] => [listening, ...group.services];
  const server = new HttpServer({
    ...listenOptions(config),
    routes: [
      ...statusRoutes({
        build,
        log,
        metrics,
        services: states,
        configYaml: (mode) => configToYaml(config, { mode }),
      }),
      ...operatorRoutes(parts.ingester),
      ...queryRoutes(parts.frontend, {
        ...tenancy,
        multiTenantQueries: config.querier.multi_tenant_queries_enabled,
        parquetAnswers: config.frontend.support_parquet_encoding,
      }),
    ],
    rawRoutes: pushRoutes(config, parts.distributor, tenancy),
    onRequest: requestObserver(metrics),
    onError: (error, request) =>
      log.error("request failed", { error, method: request.method, url: request.url }),
  });
  let port = 0;
  const listening = new Service({
    name: "server",
    start: async () => {
      port = await server.start();
    },
    stop: () => server.stop(),
  });
  const group = groupOf(limits.service, parts);
  return runningProcess(listening, group, () => port);
}

interface Parts {
  readonly pool: WorkerPool;
  readonly ingester: Ingester;
  readonly distributor: Distributor;
  readonly frontend: Frontend;
}

interface PartsDeps {
  readonly config: Config;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly limits: TenantLimits;
}

/** The objects that take pushes and answer queries, from the threads up. */
function buildParts({ config, log, metrics, limits }: PartsDeps): Parts {
  const pool = startPool(config, log, metrics);
  const directory = storeDirectory(config);
  const store = new FsStore(directory);
  const scanner = new ScanPool(pool);
  const ingester = new Ingester({
    options: ingesterOptionsOf(config, instanceId(config)),
    limitsOf: (tenant) => ingesterLimitsOf(limits.of(tenant)),
    store: segmentStore(store),
    scanner,
    seal: (job) => pool.run<SealedSegment>("seal", job, { lane: "background" }),
    clock: systemClock,
    log: log.child({ component: "ingester" }),
    metrics,
  });
  const distributor = new Distributor({
    ingester,
    limitsOf: (tenant) => pushLimitsOf(limits.of(tenant)),
    metrics: createDistributorMetrics(metrics),
    clock: systemClock,
    maxDecompressedBytes: config.distributor.max_decompressed_size,
    decodeInWorker: (input, maxBytes) =>
      pool.run<RawPush>("decode_push", { input, maxBytes }, { lane: "interactive" }),
  });
  const locate = (key: string) => ({ kind: "file" as const, path: join(directory, key) });
  const catalog = new SegmentCatalog({ store, locate, clock: systemClock });
  const querier = new Querier({
    ingester,
    catalog,
    scanner,
    threads: pool.size,
    corrupt: new CorruptSegments({ clock: systemClock, log, metrics }),
  });
  const frontend = new Frontend({
    querier,
    limitsOf: (tenant) => queryLimitsOf(limits.of(tenant)),
    clock: systemClock,
  });
  return { pool, ingester, distributor, frontend };
}

/** The table of services: each with those that must run before it. */
function groupOf(limits: Service, { pool, ingester }: Parts): ServiceGroup {
  const node = (service: Service, ...needs: string[]) => ({ service, needs });
  const idle = (name: string) => new Service({ name });
  return new ServiceGroup([
    node(limits),
    node(new Service({ name: "worker-pool", stop: () => pool.close() })),
    node(
      new Service({
        name: "ingester",
        start: (signal) => ingester.start(signal),
        stop: () => ingester.stop(),
      }),
      "worker-pool",
      "runtime-config",
    ),
    node(idle("distributor"), "ingester"),
    node(idle("querier"), "ingester", "worker-pool"),
    node(idle("query-frontend"), "querier"),
  ]);
}

/**
 * Listens before anything else starts, so that `/ready` tells how far it is while a long log is replayed, and stops
 * listening before anything else stops, so that requests which run find everything they need.
 */
function runningProcess(
  listening: Service,
  group: ServiceGroup,
  port: () => number,
): RunningProcess {
  const stop = async () => {
    await listening.stop();
    await group.stop();
  };
  return {
    start: async () => {
      await listening.start();
      try {
        await group.start();
      } catch (error) {
        await stop();
        throw error;
      }
      return port();
    },
    stop,
    firstFailure: async () => {
      const service = await group.firstFailure();
      return { name: service.name, error: service.failure };
    },
  };
}

function startPool(config: Config, log: Logger, metrics: Metrics): WorkerPool {
  const size =
    config.server.worker_threads > 0 ? config.server.worker_threads : availableParallelism();
  const lost = metrics.counter("worker_threads_lost_total", "Threads that died and were replaced.");
  return new WorkerPool({
    url: new URL("../worker.js", import.meta.url),
    size,
    maxQueued: maxQueuedJobs,
    onThreadLost: (error) => {
      lost.inc();
      log.error("a worker thread died; another takes its place", { error });
    },
  });
}

function storeDirectory(config: Config): string {
  const directory =
    config.storage_config.filesystem.directory || join(config.common.path_prefix || ".", "chunks");
  mkdirSync(directory, { recursive: true });
  return directory;
}

function instanceId(config: Config): string {
  return config.ingester.lifecycler.id || hostname();
}

function listenOptions(config: Config) {
  const { server, frontend } = config;
  return {
    address: server.http_listen_address,
    port: server.http_listen_port,
    readTimeoutMs: server.http_server_read_timeout,
    readHeaderTimeoutMs: server.http_server_read_header_timeout,
    writeTimeoutMs: server.http_server_write_timeout,
    idleTimeoutMs: server.http_server_idle_timeout,
    gracefulShutdownMs: server.graceful_shutdown_timeout,
    maxConnections: server.http_listen_conn_limit,
    maxBodyBytes: frontend.max_body_size,
    compressResponses: frontend.compress_responses,
    pathPrefix: server.http_path_prefix,
  };
}
