import { formatRoutes } from "@skald/frontend";
import {
  buildInfo,
  IdleCollection,
  logLevels,
  type NamedState,
  NewerFiles,
  Service,
  ServiceGroup,
} from "@skald/runtime";
import { createLogger } from "@skald/runtime/log";
import { Metrics } from "@skald/runtime/metrics";
import {
  type EndpointDocs,
  HttpServer,
  type RawHandler,
  type Route,
  type SocketRoute,
  servesTls,
} from "@skald/transport";
import { configToYaml, loadConfig } from "../config/load-config.js";
import type { Config } from "../config/root.js";
import { tlsOptionsOf } from "../config/server.js";
import { type ModuleName, modules, modulesOf, shows, targets } from "../config/targets.js";
import { openAccess } from "../http/access.js";
import { cutObserver, requestObserver, stretchRecorder } from "../http/request-metrics.js";
import { needOf } from "../http/route-rights.js";
import type { Builder, ModuleContext, Parts } from "../wiring/module.js";
import {
  buildLimits,
  buildPool,
  compactorRing,
  indexGatewayRing,
  rulerRing,
  schedulerRing,
} from "../wiring/modules/base.js";
import { buildCompactor } from "../wiring/modules/compactor.js";
import { buildDeletes, buildKnownDeletes } from "../wiring/modules/deletes.js";
import { buildDistributor } from "../wiring/modules/distributor.js";
import { buildIngester, buildIngesters } from "../wiring/modules/ingester.js";
import { buildPatternIngester, buildPatternIngesters } from "../wiring/modules/patterns.js";
import { buildPeers } from "../wiring/modules/peers.js";
import { buildQuerier } from "../wiring/modules/querier.js";
import { buildFrontend } from "../wiring/modules/query-frontend.js";
import { buildRuler } from "../wiring/modules/ruler.js";
import { buildCallTaker, buildScheduler } from "../wiring/modules/scheduler.js";
import { buildCatalogClient, buildIndexGateway, buildStore } from "../wiring/modules/store.js";
import { profileRoutes } from "./profile-routes.js";
import { statusRoutes } from "./status-routes.js";

/** A process made of services, ready to start. */
export interface RunningProcess {
  /** Resolves once all services run. */
  start(): Promise<void>;
  stop(): Promise<void>;
  firstFailure(): Promise<{ name: string; error: unknown }>;
  /** The endpoints that it serves. */
  readonly api: readonly Endpoint[];
}

/** Builds each module. Only these builders know whether a contract is a method call in this process. */
const builders: Readonly<Record<ModuleName, Builder>> = {
  peers: buildPeers,
  "runtime-config": buildLimits,
  "worker-pool": buildPool,
  store: buildStore,
  "pattern-ingester": buildPatternIngester,
  "pattern-ingesters": buildPatternIngesters,
  ingester: buildIngester,
  ingesters: buildIngesters,
  "known-deletes": buildKnownDeletes,
  deletion: buildDeletes,
  distributor: buildDistributor,
  "catalog-client": buildCatalogClient,
  querier: buildQuerier,
  "query-frontend": buildFrontend,
  compactor: buildCompactor,
  ruler: buildRuler,
  "index-gateway": buildIndexGateway,
  "query-scheduler": buildScheduler,
  "call-taker": buildCallTaker,
  "compactor-ring": compactorRing,
  "ruler-ring": rulerRing,
  "scheduler-ring": schedulerRing,
  "index-gateway-ring": indexGatewayRing,
};

/** Builds every object of the process, and the HTTP server in front of them. */
export function buildProcess(given: Omit<ModuleContext, "metrics">): RunningProcess {
  const { config, log, build } = given;
  const metrics = new Metrics({
    namespace: config.metrics_namespace,
    maxTenants: config.max_tenants_in_metrics,
  });
  metrics.collectProcess(build);
  const lines = metrics.counter("internal_log_messages_total", "Lines that were logged.", [
    "level",
  ]);
  for (const level of logLevels) lines.inc({ level }, 0);
  log.onLine((level) => lines.inc({ level }));
  const access = openAccess({ ...given, metrics });
  const context = { ...given, metrics, access };
  // The builders fill the parts; each module comes after those that it needs.
  const parts = {} as Parts;
  const built = modulesOf(config.target).map((name) => {
    return { name, ...builders[name](parts, context) };
  });
  const own = [
    ...statusRoutes({
      ...{ build, log, metrics },
      services: (): readonly NamedState[] => [listening, ...group.services],
      unready: () => built.map(({ unready }) => unready?.()).find((why) => why !== undefined),
      complaints: () => built.flatMap(({ complaint }) => complaint?.() ?? []),
      configYaml: (mode) => configToYaml(config, { mode }),
    }),
    // Any process formats queries.
    ...(shows(config.target, "query-frontend") ? [] : formatRoutes()),
    ...(config.server.profiles_enabled ? profileRoutes() : []),
  ];
  const all: ApiPart[] = [
    { targets: Object.keys(targets), routes: own },
    ...built
      .filter(({ name }) => shows(config.target, name))
      .map(({ name, ...module }) => ({ ...module, targets: targetsWith(name) })),
  ];
  const api = config.server.reference_paths_enabled ? all : underPublishedNames(all);
  const server = serverOf(api, context);
  access?.onChange(() => void server.authorizeAgain());
  const recorder = stretchRecorder(metrics, log);
  const collection = new IdleCollection();
  const listening = new Service({
    name: "server",
    start: async () => {
      log.info("listening", { port: await server.start() });
      recorder.start();
      collection.start();
      access?.watch();
    },
    stop: async () => {
      await Promise.all([server.stop(), ...built.map(({ closeDoors }) => closeDoors?.())]);
      recorder.stop();
      collection.stop();
      access?.stop();
    },
  });
  const group = new ServiceGroup(
    built.map(({ name, service = new Service({ name }) }) => ({ service, needs: modules[name] })),
  );
  const running = runningProcess(listening, group);
  const start = async () => {
    await running.start();
    setTimeout(warmNext, warmAfterMs).unref();
  };
  const warmNext = () => {
    const isWarming = built.some(({ warm }) => warm?.() === true);
    if (isWarming) setTimeout(warmNext, warmEveryMs).unref();
  };
  return { ...running, start, api: describeApi(api) };
}

/**
 * Threads start on demand, which takes a sixth of a second each. Once the process has been ready for a while it starts one of
 * each kind ahead, one after the other, so that the first query and the first large push find theirs.
 */
const warmAfterMs = 3000;
const warmEveryMs = 200;

/** The targets that run a module. */
function targetsWith(module: ModuleName): string[] {
  return Object.keys(targets).filter((name) => shows([name], module));
}

/**
 * The HTTP server is the first to start, so that `/ready` shows the progress while a long log is replayed, and the first to
 * stop, so that running requests still find everything they need.
 */
function runningProcess(listening: Service, group: ServiceGroup): Omit<RunningProcess, "api"> {
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
    },
    stop,
    firstFailure: async () => {
      const { name, failure } = await group.firstFailure();
      return { name, error: failure };
    },
  };
}

/** Throws if nobody said what a path needs. */
function checkRights(parts: readonly ApiPart[]): void {
  for (const { routes = [], rawRoutes = new Map(), socketRoutes = [] } of parts) {
    for (const { path } of [...routes, ...socketRoutes]) needOf(path);
    for (const path of rawRoutes.keys()) needOf(path);
  }
}

function serverOf(
  parts: readonly ApiPart[],
  { config, log, metrics, access }: ModuleContext,
): HttpServer {
  if (access !== undefined) checkRights(parts);
  const panics = metrics.counter("panic_total", "Requests that failed for a fault of the program.");
  const newerFiles = new NewerFiles(log);
  const server = new HttpServer({
    ...listenOptions(config),
    routes: parts.flatMap(({ routes = [] }) => routes),
    rawRoutes: new Map(parts.flatMap(({ rawRoutes = [] }) => [...rawRoutes])),
    socketRoutes: parts.flatMap(({ socketRoutes = [] }) => socketRoutes),
    authorize: access && ((headers, path) => access.authorize(headers, needOf(path))),
    onRequest: requestObserver(metrics),
    onCut: cutObserver(metrics, log, "http"),
    onCertificates: (error) => {
      if (error === undefined) log.info("certificates were read again");
      else log.error("changed certificates cannot be used; the last ones stay", { error });
    },
    onError: (error, { method, url }) => {
      if (newerFiles.tell(error)) return;
      panics.inc();
      log.error("request failed", { error, method, url });
    },
  });
  const help = "Connections that are open.";
  metrics.gaugeOf("tcp_connections", help, () => server.connections, { protocol: "http" });
  return server;
}

function listenOptions({ server, frontend, ui }: Config) {
  const tls = tlsOptionsOf(server);
  return {
    tls: servesTls(tls) ? tls : undefined,
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
    allowedOrigins: ui.allowed_origins,
    pathPrefix: server.http_path_prefix,
  };
}

/** What one module of the process serves. */
export interface ApiPart {
  /** The targets that run it. */
  readonly targets: readonly string[];
  readonly routes?: readonly Route[] | undefined;
  readonly rawRoutes?: ReadonlyMap<string, RawHandler> | undefined;
  readonly socketRoutes?: readonly SocketRoute[] | undefined;
}

/** An endpoint with all its paths. */
export interface Endpoint {
  readonly methods: readonly string[];
  /** The published path first. */
  readonly paths: readonly string[];
  readonly targets: readonly string[];
  /** Undefined if its route has none. */
  readonly docs: EndpointDocs | undefined;
}

/** The endpoints of routes: routes with the same docs are one endpoint. */
export function describeApi(parts: readonly ApiPart[]): Endpoint[] {
  const found = new Map<unknown, Endpoint>();
  for (const { targets, routes = [], rawRoutes = [] } of parts) {
    const raw = [...rawRoutes].map(([path, { docs }]) => ({ path, methods: ["POST"], docs }));
    for (const { path, methods, docs } of [...routes, ...raw]) {
      const key = docs ?? `${methods} ${path}`;
      const known = found.get(key) ?? { methods, paths: [], targets, docs };
      found.set(key, { ...known, paths: [...new Set([...known.paths, path])] });
    }
  }
  return [...found.values()];
}

/** Starts of the paths that agents and Grafana know from the reference. */
const referencePaths = ["/loki/", "/prometheus/", "/api/prom/"];

/** The same without the paths of the reference. */
export function underPublishedNames(parts: readonly ApiPart[]): ApiPart[] {
  const isPublished = (path: string) => !referencePaths.some((start) => path.startsWith(start));
  return parts.map(({ targets, routes = [], rawRoutes = [], socketRoutes = [] }) => ({
    targets,
    socketRoutes: socketRoutes.filter(({ path }) => isPublished(path)),
    routes: routes.filter(({ path }) => isPublished(path)),
    rawRoutes: new Map([...rawRoutes].filter(([path]) => isPublished(path))),
  }));
}

/** Includes the targets that are not part of `all`. */
export const everyTarget = "-target=all,index-gateway,pattern-ingester";

/** All endpoints that a process can serve, for documents and tests; it starts nothing. */
export function wholeApi(): readonly Endpoint[] {
  const flags = ["-server.profiles-enabled", "-pattern-ingester.enabled", everyTarget];
  const loaded = loadConfig(flags, {});
  if ("exit" in loaded) throw new Error(loaded.exit.text);
  const log = createLogger({ target: { write: () => undefined } });
  return buildProcess({ config: loaded.config, log, build: buildInfo() }).api;
}
