import { expect, it } from "@jest/globals";
import { defaultLimits } from "@skald/runtime/config";
import { Metrics } from "@skald/runtime/metrics";
import type { Route } from "@skald/transport";
import { tenantLimitsRoutes, userStatsRoutes } from "./tenant-routes.js";

async function ask([route]: readonly Route[], headers: Record<string, string> = {}) {
  const answer = await (route as Route).handler({
    ...{ method: "GET", path: "", variables: {}, headers, body: new Uint8Array(0) },
    params: new URLSearchParams(),
    signal: new AbortController().signal,
  });
  return String(answer.body);
}

it("a tenant sees what holds for it, of what may be seen", async () => {
  const routes = tenantLimitsRoutes({
    authEnabled: true,
    noAuthTenant: "fake",
    published: ["max_query_series", "query_timeout", "no_such_limit"],
    limitsOf: (tenant) => ({ ...defaultLimits, max_query_series: tenant === "a" ? 7 : 500 }),
  });
  expect(await ask(routes, { "x-scope-orgid": "a" })).toBe(
    "query_timeout: 1m\nmax_query_series: 7\n",
  );
  expect(await ask(routes, { "x-scope-orgid": "b" })).toContain("max_query_series: 500\n");
  await expect(ask(routes)).rejects.toThrow("no org id");
});

it("counts streams of tenants, and the lines that they pushed since the last look", async () => {
  const metrics = new Metrics();
  const labels = ["tenant", "policy"];
  const lines = metrics.counter("distributor_lines_received_total", "Lines.", labels);
  const streams = metrics.gauge("ingester_memory_streams", "Streams.", ["tenant"]);
  let nowMs = 0;
  const routes = userStatsRoutes(metrics, { nowMs: () => nowMs });
  expect(JSON.parse(await ask(routes))).toEqual([]);
  lines.inc({ tenant: "a", policy: "" }, 60);
  lines.inc({ tenant: "a", policy: "x" }, 40);
  streams.set({ tenant: "a" }, 3);
  streams.set({ tenant: "b" }, 1);
  const one = { RuleIngestionRate: 0, replicationFactor: 1 };
  nowMs = 10_000;
  expect(JSON.parse(await ask(routes))).toEqual([
    { ...one, userID: "a", ingestionRate: 10, APIIngestionRate: 10, numSeries: 3 },
    { ...one, userID: "b", ingestionRate: 0, APIIngestionRate: 0, numSeries: 1 },
  ]);
  nowMs = 20_000;
  expect(JSON.parse(await ask(routes))[0]).toMatchObject({ ingestionRate: 0 });
});
