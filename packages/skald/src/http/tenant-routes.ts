import {
  formatYaml,
  type Limits,
  limitsConfig,
  printableConfig,
  readSchema,
} from "@skald/runtime/config";
import type { Metrics } from "@skald/runtime/metrics";
import {
  jsonResponse,
  parseTenant,
  type Route,
  type TenantOptions,
  textResponse,
} from "@skald/transport";
import { operatorDocs as docs } from "./operator-docs.js";

export interface TenantLimitsDeps extends TenantOptions {
  readonly limitsOf: (tenant: string) => Limits;
  /** Names of limits that a client may know. */
  readonly published: readonly string[];
}

/** The limits that hold for the tenant that asks. */
export function tenantLimitsRoutes(deps: TenantLimitsDeps): Route[] {
  const section = readSchema(limitsConfig);
  const handler: Route["handler"] = ({ headers }) => {
    const tenant = parseTenant(headers["x-scope-orgid"], deps);
    const all = printableConfig(section, deps.limitsOf(tenant));
    const known = Object.keys(all).filter((name) => deps.published.includes(name));
    return textResponse(
      200,
      formatYaml(Object.fromEntries(known.map((name) => [name, all[name]]))),
    );
  };
  const path = "/config/tenant/v1/limits";
  return [{ methods: ["GET"], path, handler, docs: docs.tenant_limits }];
}

/** Who pushes, how fast, and how many streams that are. Rates are those since the last look. */
export function userStatsRoutes(
  metrics: Pick<Metrics, "sums">,
  clock: { readonly nowMs: () => number },
): Route[] {
  let before: ReadonlyMap<string, number> = new Map();
  let beforeMs = clock.nowMs();
  const handler: Route["handler"] = async () => {
    const lines = await metrics.sums("distributor_lines_received_total", "tenant");
    const streams = await metrics.sums("ingester_memory_streams", "tenant");
    const nowMs = clock.nowMs();
    const seconds = Math.max(nowMs - beforeMs, 1) / 1000;
    const stats = [...new Set([...lines.keys(), ...streams.keys()])].sort().map((tenant) => {
      const rate = ((lines.get(tenant) ?? 0) - (before.get(tenant) ?? 0)) / seconds;
      return {
        userID: tenant,
        ingestionRate: rate,
        numSeries: streams.get(tenant) ?? 0,
        APIIngestionRate: rate,
        RuleIngestionRate: 0,
        replicationFactor: 1,
      };
    });
    before = lines;
    beforeMs = nowMs;
    return jsonResponse(200, stats);
  };
  const path = "/distributor/all_user_stats";
  return [{ methods: ["GET"], path, handler, docs: docs.all_user_stats }];
}
