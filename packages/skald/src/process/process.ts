import { formatRoutes } from "@skald/frontend";
import { type NamedState, NewerFiles, Service, ServiceGroup } from "@skald/runtime";
import { Metrics } from "@skald/runtime/metrics";
import { HttpServer, servesTls } from "@skald/transport";
import { configToYaml } from "../config/load-config.js";
import type { Config } from "../config/root.js";
import { type ModuleName, modules, modulesOf, shows, targets } from "../config/targets.js";
import { tlsOptionsOf } from "../config/tls-options.js";
import { type ApiPart, describeApi, type Endpoint, underPublishedNames } from "../http/api.js";
import { profileRoutes } from "../http/profile-routes.js";
import { cutObserver, requestObserver } from "../http/request-metrics.js";
import { memberlistRoutes, statusRoutes } from "../http/status-routes.js";
import type { ModuleContext } from "../wiring/module.js";
import { buildModules } from "../wiring/modules/build-modules.js";

/** A process made of services, ready to start. */
export interface RunningProcess {
  /** Resolves once everything runs. */
  start(): Promise<void>;
  stop(): Promise<void>;
  firstFailure(): Promise<{ name: string; error: unknown }>;
  /** What it serves. */
  readonly api: readonly Endpoint[];
}

/** Builds every object of the process and the server in front of them. */
export function buildProcess(context: Omit<ModuleContext, "metrics">): RunningProcess {
  const { config, log, build } = context;
  const metrics = new Metrics({ namespace: config.metrics_namespace });
  metrics.collectProcess(build);
  const panics = metrics.counter("panic_total", "Requests that failed for a fault of the program.");
  const names = modulesOf(config.target);
  const built = buildModules(names, { ...context, metrics });
  const shown = built.filter((_, i) => shows(config.target, names[i] as ModuleName));
  const states = (): readonly NamedState[] => [listening, ...group.services];
  const own = [
    ...statusRoutes({
      build,
      log,
      metrics,
      services: states,
      unready: () => firstOf(built.map(({ unready }) => unready?.())),
      configYaml: (mode) => configToYaml(config, { mode }),
    }),
    ...memberlistRoutes(),
    // A query is formatted by any process.
    ...(shows(config.target, "query-frontend") ? [] : formatRoutes()),
    ...(config.server.profiles_enabled ? profileRoutes() : []),
  ];
  const all: ApiPart[] = [
    { targets: Object.keys(targets), routes: own },
    ...shown.map((module) => ({
      targets: targetsWith(names[built.indexOf(module)] as ModuleName),
      routes: module.routes,
      rawRoutes: module.rawRoutes,
      socketRoutes: module.socketRoutes,
    })),
  ];
  const parts = config.server.reference_paths_enabled ? all : underPublishedNames(all);
  const newerFiles = new NewerFiles(log);
  const server = new HttpServer({
    ...listenOptions(config),
    routes: parts.flatMap(({ routes = [] }) => routes),
    rawRoutes: new Map(parts.flatMap(({ rawRoutes = [] }) => [...rawRoutes])),
    socketRoutes: parts.flatMap(({ socketRoutes = [] }) => socketRoutes),
    onRequest: requestObserver(metrics),
    onCut: cutObserver(metrics, log, "http"),
    onCertificates: (error) => {
      if (error === undefined) log.info("certificates were read again");
      else log.error("changed certificates cannot be used; the last ones stay", { error });
    },
    onError: (error, request) => {
      if (newerFiles.tell(error)) return;
      panics.inc();
      log.error("request failed", { error, method: request.method, url: request.url });
    },
  });
  const help = "Connections that are open.";
  metrics.gaugeOf("tcp_connections", help, () => server.connections, { protocol: "http" });
  const listening = new Service({
    name: "server",
    start: async () => {
      const port = await server.start();
      log.info("listening", { port });
    },
    stop: () => server.stop(),
  });
  const group = new ServiceGroup(
    names.map((name, i) => ({
      service: built[i]?.service ?? new Service({ name }),
      needs: modules[name],
    })),
  );
  return { ...runningProcess(listening, group), api: describeApi(parts) };
}

/** The targets that run a module. */
function targetsWith(module: ModuleName): string[] {
  return Object.keys(targets).filter((name) => shows([name], module));
}

function firstOf(reasons: readonly (string | undefined)[]): string | undefined {
  return reasons.find((reason) => reason !== undefined);
}

/**
 * Listens before anything else starts, so that `/ready` tells how far it is while a long log is replayed, and stops
 * listening before anything else stops, so that requests which run find everything they need.
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
      const service = await group.firstFailure();
      return { name: service.name, error: service.failure };
    },
  };
}

function listenOptions(config: Config) {
  const { server, frontend, ui } = config;
  const tls = tlsOptionsOf(config);
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
