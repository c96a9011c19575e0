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
    durations.observe(
      { method, route, status_code: String(status), ws: "false" },
      durationMs / 1000,
    );
  };
}
