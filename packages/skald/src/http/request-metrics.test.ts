import { describe, expect, it } from "@jest/globals";
import { SkaldError } from "@skald/model";
import { markWork } from "@skald/runtime";
import { createLogger } from "@skald/runtime/log";
import { Metrics } from "@skald/runtime/metrics";
import { until } from "@skald/testkit";
import { grpcObservers, requestObserver, stretchRecorder } from "./request-metrics.js";

const sizes = { requestBytes: undefined, responseBytes: undefined };

describe("stretchRecorder", () => {
  it("counts what blocks the main thread, and logs it with a hash of the query", async () => {
    const metrics = new Metrics();
    const lines: string[] = [];
    const log = createLogger({ target: { write: (line) => void lines.push(line) } });
    const recorder = stretchRecorder(metrics, log);
    recorder.start();
    try {
      markWork("service_api_v1_query", "shop", "/service/api/v1/query?query=x");
      const before = process.cpuUsage();
      while (process.cpuUsage(before).user < 200_000);
      await until(() => lines.length > 0);
    } finally {
      recorder.stop();
    }
    const { text } = await metrics.read();
    const labels = 'route="loki_api_v1_query",tenant="shop"';
    expect(text).toContain(`loki_main_thread_stretch_seconds_count{${labels}} 1`);
    const found = lines.map((line) => JSON.parse(line)).find(({ tenant }) => tenant === "shop");
    expect(found).toMatchObject({
      ...{ level: "warn", route: "service_api_v1_query", query_hash: expect.any(Number) },
    });
    expect(found.duration_ms).toBeGreaterThanOrEqual(100);
  });
});

describe("requestObserver", () => {
  it("counts seconds and bytes by method, route and status", async () => {
    const metrics = new Metrics();
    const observe = requestObserver(metrics);
    const start = { method: "POST", route: "loki_api_v1_push" };
    const facts = { ...start, status: 204, requestBytes: 100, responseBytes: 0 };
    observe(start)({ ...facts, durationMs: 300 });
    observe(start)({ ...facts, durationMs: 100, requestBytes: undefined });
    const { text } = await metrics.read();
    const endpoint = 'method="POST",route="loki_api_v1_push"';
    const labels = `${endpoint},status_code="204",ws="false"`;
    expect(text).toContain(`loki_request_duration_seconds_count{${labels}} 2`);
    expect(text).toContain(`loki_request_duration_seconds_sum{${labels}} 0.4`);
    expect(text).toContain(`loki_request_duration_seconds_bucket{le="0.25",${labels}} 1`);
    expect(text).toContain(`loki_request_message_bytes_count{${endpoint}} 1`);
    expect(text).toContain(`loki_request_message_bytes_sum{${endpoint}} 100`);
    expect(text).toContain(`loki_response_message_bytes_count{${endpoint}} 2`);
  });

  it("tells what is being served", async () => {
    const metrics = new Metrics();
    const start = { method: "GET", route: "ready" };
    const end = requestObserver(metrics)(start);
    const line = 'loki_inflight_requests{method="GET",route="ready"}';
    expect((await metrics.read()).text).toContain(`${line} 1`);
    end({ ...start, ...sizes, status: 200, durationMs: 1 });
    expect((await metrics.read()).text).toContain(`${line} 0`);
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
    const start = { method: "GET", route };
    requestObserver(metrics)(start)({ ...start, ...sizes, status: 200, durationMs: 1 });
    expect((await metrics.read()).text).toContain(`_count{method="GET",route="${want}",`);
  });
});

describe("grpcObservers", () => {
  it("counts calls beside requests, errors by their status", async () => {
    const metrics = new Metrics();
    requestObserver(metrics);
    const observe = grpcObservers(
      metrics,
      createLogger({ target: { write: () => undefined } }),
    ).onEnd;
    const path = "/skald.v1.Ingester/Push";
    observe({ path, durationMs: 300 });
    observe({ path, durationMs: 300, error: new SkaldError("unavailable", "down") });
    const { text } = await metrics.read();
    for (const status of ["success", "503"])
      expect(text).toContain(
        `loki_request_duration_seconds_count{method="gRPC",route="${path}",status_code="${status}",ws="false"} 1`,
      );
  });
});
