import { errorCodeOf, errorStatus } from "@skald/model";
import type { EndedCall, GrpcServerOptions } from "@skald/rpc";
import { type Logger, type Metrics, StretchRecorder } from "@skald/runtime";
import type { CutObserver, RequestFacts, RequestObserver } from "@skald/transport";

const MiB = 1024 * 1024;
const messageBuckets = [1, 2.5, 5, 10, 25, 50, 100, 250].map((n) => n * MiB);

/** Counts requests by the metrics that public dashboards read. */
export function requestObserver(metrics: Metrics): RequestObserver {
  const durations = durationsOf(metrics);
  const names = ["method", "route"];
  const inflight = metrics.gauge("inflight_requests", "Requests that are being served.", names);
  const message = (what: string, help: string) =>
    metrics.histogram(`${what}_message_bytes`, help, names, messageBuckets);
  const received = message("request", "Bodies of requests whose length was declared.");
  const sent = message("response", "Bodies of answers that were taken as a whole.");
  // Kept for each endpoint, because looking metrics up by their labels costs more than counting.
  const endpoints = new Map<string, ReturnType<typeof endpointOf>>();
  const endpointOf = (method: string, route: string) => {
    const labels = { method, route: knownRoute(route) };
    return {
      labels,
      inflight: inflight.labels(labels),
      received: received.labels(labels),
      sent: sent.labels(labels),
      /** By status; requests for a WebSocket are not among them. */
      durations: new Map<number, ReturnType<typeof durations.labels>>(),
    };
  };
  const durationOf = (endpoint: ReturnType<typeof endpointOf>, status: number, ws: boolean) => {
    const known = ws ? undefined : endpoint.durations.get(status);
    if (known !== undefined) return known;
    const labels = { ...endpoint.labels, status_code: String(status), ws: String(ws) };
    const duration = durations.labels(labels);
    if (!ws) endpoint.durations.set(status, duration);
    return duration;
  };
  return ({ method, route }) => {
    const key = `${method} ${route}`;
    const endpoint = endpoints.get(key) ?? endpointOf(method, route);
    endpoints.set(key, endpoint);
    endpoint.inflight.inc();
    return ({
      status,
      durationMs,
      requestBytes,
      responseBytes,
      isSocket = false,
    }: RequestFacts) => {
      endpoint.inflight.dec();
      durationOf(endpoint, status, isSocket).observe(durationMs / 1000);
      if (requestBytes !== undefined) endpoint.received.observe(requestBytes);
      if (responseBytes !== undefined) endpoint.sent.observe(responseBytes);
    };
  };
}

/** What a gRPC server reports to: calls that ended, connections that were cut, and faults. */
export function grpcObservers(
  metrics: Metrics,
  log: Logger,
): Required<Pick<GrpcServerOptions, "onEnd" | "onCut" | "onError">> {
  const panics = metrics.counter("grpc_panic_total", "Calls that failed for a fault of ours.");
  return {
    onEnd: callObserver(metrics),
    onCut: cutObserver(metrics, log, "grpc"),
    onError: (error, path) => {
      panics.inc();
      log.error("a call failed", { path, error });
    },
  };
}

/** Counts gRPC calls beside requests: the route is the name of the method, the status of an error its HTTP status. */
function callObserver(metrics: Metrics): (call: EndedCall) => void {
  const durations = durationsOf(metrics);
  return ({ path, durationMs, error, httpStatus }) => {
    const failed = error === undefined ? httpStatus : errorStatus[errorCodeOf(error)];
    const status = failed === undefined ? "success" : String(failed);
    const labels = { method: "gRPC", route: path, status_code: status, ws: "false" };
    durations.observe(labels, durationMs / 1000);
  };
}

/** Counts connections that the server cut, and logs those that a fault of the program ended. */
export function cutObserver(metrics: Metrics, log: Logger, protocol: "http" | "grpc"): CutObserver {
  const help =
    "Connections that were cut: a handler failed, or the client reset too many requests or sent too many ahead.";
  const cuts = metrics.counter("connections_cut_total", help, ["protocol", "reason"]);
  for (const reason of ["fault", "resets", "ahead"]) cuts.inc({ protocol, reason }, 0);
  return (reason, error) => {
    cuts.inc({ protocol, reason });
    if (reason === "fault")
      log.error("a connection was cut: its handler failed", { protocol, error });
  };
}

/** Stretches from this length on are logged. */
const maxStretchMs = 50;
const maxStretchTenants = 100;
const maxTenantChars = 150;
const stretchBuckets = [0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Counts what keeps the main thread from other work for more than about 10 ms, and logs what does so for more than 50 ms. */
export function stretchRecorder(metrics: Metrics, log: Logger): StretchRecorder {
  const stretches = metrics.histogram(
    "main_thread_stretch_seconds",
    "Stretches of more than 10 ms that the main thread was busy with one piece of work.",
    ["route", "tenant"],
    stretchBuckets,
  );
  const tenants = new Set<string>();
  return new StretchRecorder(({ route, tenant, queryHash, ms }) => {
    // The tenant is as the client sent it, so it may be anything.
    if (tenants.size < maxStretchTenants && tenant.length <= maxTenantChars) tenants.add(tenant);
    const label = tenants.has(tenant) ? tenant : "other tenants";
    stretches.observe({ route: knownRoute(route), tenant: label }, ms / 1000);
    if (ms < maxStretchMs) return;
    const hash = queryHash === undefined ? {} : { query_hash: queryHash };
    const facts = {
      route,
      tenant: tenant.slice(0, maxTenantChars),
      ...hash,
      duration_ms: Math.round(ms),
    };
    log.warn("the main thread was busy with one piece of work", facts);
  });
}

function durationsOf(metrics: Metrics) {
  return metrics.histogram("request_duration_seconds", "Time from request to answer.", [
    "method",
    "route",
    "status_code",
    "ws",
  ]);
}

/** The route that dashboards know: all paths of an endpoint count as one. */
function knownRoute(route: string): string {
  return route
    .replace(/^service_api_v1_/, "loki_api_v1_")
    .replace(/^compat_api_v1_/, "prometheus_api_v1_")
    .replace(/^api_legacy_/, "api_prom_");
}
