import { describe, expect, it } from "@jest/globals";
import { Metrics } from "@skald/runtime/metrics";
import { requestObserver } from "./request-metrics.js";

describe("requestObserver", () => {
  it("counts seconds by method, route and status", async () => {
    const metrics = new Metrics();
    const observe = requestObserver(metrics);
    observe({ method: "POST", route: "loki_api_v1_push", status: 204, durationMs: 300 });
    observe({ method: "POST", route: "loki_api_v1_push", status: 204, durationMs: 100 });
    const { text } = await metrics.read();
    const labels = 'method="POST",route="loki_api_v1_push",status_code="204",ws="false"';
    expect(text).toContain(`loki_request_duration_seconds_count{${labels}} 2`);
    expect(text).toContain(`loki_request_duration_seconds_sum{${labels}} 0.4`);
    expect(text).toContain(`loki_request_duration_seconds_bucket{le="0.25",${labels}} 1`);
  });

  it.each([
    ["service_api_v1_query_range", "loki_api_v1_query_range"],
    ["api_legacy_push", "api_prom_push"],
    ["compat_api_v1_rules", "prometheus_api_v1_rules"],
    ["loki_api_v1_query", "loki_api_v1_query"],
    ["services", "services"],
    ["other", "other"],
  ])("counts %s as %s", async (route, want) => {
    const metrics = new Metrics();
    requestObserver(metrics)({ method: "GET", route, status: 200, durationMs: 1 });
    expect((await metrics.read()).text).toContain(`_count{method="GET",route="${want}",`);
  });
});
