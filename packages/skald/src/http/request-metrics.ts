import type { Metrics } from "@skald/runtime";
import type { RequestFacts } from "@skald/transport";

/** Counts requests by the histogram that public dashboards read. */
export function requestObserver(metrics: Metrics): (facts: RequestFacts) => void {
  const durations = metrics.histogram("request_duration_seconds", "Time from request to answer.", [
    "method",
    "route",
    "status_code",
    "ws",
  ]);
  return ({ method, route, status, durationMs }) => {
    const labels = { method, route: knownRoute(route), status_code: String(status), ws: "false" };
    durations.observe(labels, durationMs / 1000);
  };
}

/** Both names of an endpoint count as one: that which dashboards ask for. */
function knownRoute(route: string): string {
  return route
    .replace(/^service_api_v1_/, "loki_api_v1_")
    .replace(/^compat_api_v1_/, "prometheus_api_v1_")
    .replace(/^api_legacy_/, "api_prom_");
}
