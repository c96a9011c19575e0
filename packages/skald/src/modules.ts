import { mkdirSync } from "node:fs";
import { availableParallelism, hostname } from "node:os";
import { join } from "node:path";
import {
  createDistributorMetrics,
  createPushHandler,
  Distributor,
  InflightBytes,
} from "@skald/distributor";
import { Frontend, queryRoutes } from "@skald/frontend";
import { Ingester } from "@skald/ingester";
import type { RawPush } from "@skald/kernels";
import { systemClock } from "@skald/model";
import { Querier } from "@skald/querier";
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
import { FsStore, ScanPool, type SealedSegment, SegmentCatalog } from "@skald/storage";
import { HttpServer, parseTenant, type RawHandler } from "@skald/transport";
import { configToYaml } from "./config/load-config.js";
import { keyNotes } from "./config/notes.js";
import type { Config } from "./config/root.js";
import { ingesterLimitsOf, ingesterOptionsOf } from "./ingester-options.js";
import { pushLimitsOf, queryLimitsOf } from "./limits.js";
import { operatorRoutes } from "./operator-routes.js";
import { requestObserver } from "./request-metrics.js";
import { segmentStore } from "./segment-store.js";
import { statusRoutes } from "./status-routes.js";

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
  const pool = startPool(config, log, metrics);
  const directory = storeDirectory(config);
  const store = new FsStore(directory);
  const ingester = new Ingester({
    options: ingesterOptionsOf(config, instanceId(config)),
    limitsOf: (tenant) => ingesterLimitsOf(limits.of(tenant)),
    store: segmentStore(store),
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
    catalog: catalog,
    scans: new ScanPool(pool),
  });
  const frontend = new Frontend({
    backend: querier,
    limitsOf: (tenant) => queryLimitsOf(limits.of(tenant)),
    clock: systemClock,
  });

  const tenancy = { authEnabled: config.auth_enabled, noAuthTenant: config.no_auth_tenant };
  const states = (): readonly NamedState[] => group.services;
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
      ...operatorRoutes(ingester),
      ...queryRoutes(frontend, {
        ...tenancy,
        multiTenantQueries: config.querier.multi_tenant_queries_enabled,
        parquetAnswers: config.frontend.support_parquet_encoding,
      }),
    ],
    rawRoutes: pushRoutes(config, distributor, tenancy),
    onRequest: requestObserver(metrics),
    onError: (error, request) =>
      log.error("request failed", { error, method: request.method, url: request.url }),
  });

  let port = 0;
  const node = (service: Service, ...needs: string[]) => ({ service, needs });
  const workers = new Service({ name: "worker-pool", stop: () => pool.close() });
  const ingesting = new Service({
    name: "ingester",
    start: () => ingester.start(),
    stop: () => ingester.stop(),
  });
  const idle = (name: string) => new Service({ name });
  const group = new ServiceGroup([
    node(limits.service),
    node(workers),
    node(ingesting, "worker-pool", "runtime-config"),
    node(idle("distributor"), "ingester"),
    node(idle("querier"), "ingester", "worker-pool"),
    node(idle("query-frontend"), "querier"),
    node(
      new Service({
        name: "server",
        start: async () => {
          port = await server.start();
        },
        stop: () => server.stop(),
      }),
      "distributor",
      "query-frontend",
    ),
  ]);
  return {
    start: async () => {
      await group.start();
      return port;
    },
    stop: () => group.stop(),
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
    url: new URL("./worker.js", import.meta.url),
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

type Tenancy = { readonly authEnabled: boolean; readonly noAuthTenant: string };

/** Pushes by path; those of the legacy API have another JSON form. */
function pushRoutes(
  config: Config,
  distributor: Distributor,
  tenancy: Tenancy,
): Map<string, RawHandler> {
  const push = createPushHandler({
    distributor,
    maxReceivedBytes: config.distributor.max_recv_msg_size,
    inflight: new InflightBytes(config.distributor.max_inflight_bytes),
  });
  const styles = [
    ["/service/api/v1/push", "v1"],
    ["/loki/api/v1/push", "v1"],
    ["/api/legacy/push", "legacy"],
    ["/api/prom/push", "legacy"],
  ] as const;
  return new Map(
    styles.map(([path, style]) => [
      config.server.http_path_prefix + path,
      (request, response) =>
        push(request, response, parseTenant(request.headers["x-scope-orgid"], tenancy), style),
    ]),
  );
}
