import { describe, expect, it } from "@jest/globals";
import { defaultLimits } from "@skald/runtime/config";
import type { HttpResponse } from "@skald/transport";
import { drilldownRoutes } from "./tenant-routes.js";

const routes = drilldownRoutes({
  ...{ authEnabled: true, noAuthTenant: "fake" },
  limitsOf: (tenant) => ({ ...defaultLimits, max_query_series: tenant === "a" ? 7 : 9 }),
  published: ["max_query_series", "pattern_persistence_enabled", "query_timeout", "nothing"],
  patternsEnabled: () => true,
  version: "3.5.0",
});

const ask = async (tenant: string): Promise<HttpResponse> =>
  routes[0]!.handler({
    method: "GET",
    path: routes[0]!.path,
    variables: {},
    headers: { "x-scope-orgid": tenant },
    params: new URLSearchParams(),
    body: new Uint8Array(0),
    signal: new AbortController().signal,
  });

describe("drilldown-limits", () => {
  it("answers with the published limits of the tenant, written as in its file", async () => {
    expect(JSON.parse(String((await ask("a|b")).body))).toEqual({
      limits: { max_query_series: 7, pattern_persistence_enabled: false, query_timeout: "1m" },
      pattern_ingester_enabled: true,
      version: "3.5.0",
    });
  });

  it("needs a tenant, and is there under both names", async () => {
    await expect(ask("")).rejects.toThrow("no org id");
    expect(routes.map(({ path }) => path)).toEqual([
      "/service/api/v1/drilldown-limits",
      "/loki/api/v1/drilldown-limits",
    ]);
  });
});
