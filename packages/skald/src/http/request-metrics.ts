import { errorCodeOf, errorStatus } from "@skald/model";
import type { EndedCall } from "@skald/rpc";
import type { Logger, Metrics } from "@skald/runtime";
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
  // Of each endpoint once: looking them up by their labels costs more than counting.
  const endpoints = new Map<string, ReturnType<typeof endpointOf>>();
  const endpointOf = (method: string, route: string) => {
    const labels = { method, route: knownRoute(route) };
    return {
      labels,
      inflight: inflight.labels(labels),
      received: received.labels(labels),
      sent: sent.labels(labels),
      /** By status, of those that are no web socket. */
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

/** Counts calls of other processes beside requests: the route is the name of the method, an error its status in HTTP. */
export function callObserver(metrics: Metrics): (call: EndedCall) => void {
  const durations = durationsOf(metrics);
  return ({ path, durationMs, error }) => {
    const status = error === undefined ? "success" : String(errorStatus[errorCodeOf(error)]);
    const labels = { method: "gRPC", route: path, status_code: status, ws: "false" };
    durations.observe(labels, durationMs / 1000);
  };
}

/** Counts connections that the server cut, and logs those that a fault of the program ended. */
export function cutObserver(metrics: Metrics, log: Logger, protocol: "http" | "grpc"): CutObserver {
  const help =
    "Connections that were cut: a handler failed, or the client reset too many requests.";
  const cuts = metrics.counter("connections_cut_total", help, ["protocol", "reason"]);
  for (const reason of ["fault", "resets"]) cuts.inc({ protocol, reason }, 0);
  return (reason, error) => {
    cuts.inc({ protocol, reason });
    if (reason === "fault")
      log.error("a connection was cut: its handler failed", { protocol, error });
  };
}

function durationsOf(metrics: Metrics) {
  return metrics.histogram("request_duration_seconds", "Time from request to answer.", [
    "method",
    "route",
    "status_code",
    "ws",
  ]);
}

/** Both names of an endpoint count as one: that which dashboards ask for. */
function knownRoute(route: string): string {
  return route
    .replace(/^service_api_v1_/, "loki_api_v1_")
    .replace(/^compat_api_v1_/, "prometheus_api_v1_")
    .replace(/^api_legacy_/, "api_prom_");
}
