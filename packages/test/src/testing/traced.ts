import { callerId } from "./collector.js";

export const tracedTenant = "traced";
export const pushRoute = "POST /loki/api/v1/push";
export const queryRoute = "GET /loki/api/v1/query_range";

/** A request of a client that has begun the trace. */
export function traced(traceId: string, flags = "01") {
  return {
    "x-scope-orgid": tracedTenant,
    "content-type": "application/json",
    traceparent: `00-${traceId}-${callerId}-${flags}`,
    tracestate: "vendor=1",
  };
}

/** Pushes a line with such headers. */
export function pushTraced(url: string, headers: Record<string, string>): Promise<Response> {
  const values = [[`${Date.now()}000000`, "hello"]];
  const body = JSON.stringify({ streams: [{ stream: { app: "a" }, values }] });
  return fetch(`${url}/loki/api/v1/push`, { method: "POST", headers, body });
}

/** Asks for that line. */
export function queryTraced(url: string, headers: Record<string, string>): Promise<Response> {
  const asked = new URLSearchParams({ query: '{app="a"} |= "hello"', limit: "10" });
  return fetch(`${url}/loki/api/v1/query_range?${asked}`, { headers });
}
