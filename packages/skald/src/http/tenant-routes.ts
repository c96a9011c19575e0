import {
  formatYaml,
  type Limits,
  limitsConfig,
  printableConfig,
  readSchema,
} from "@skald/runtime/config";
import type { Metrics } from "@skald/runtime/metrics";
import {
  type EndpointDocs,
  jsonResponse,
  parseTenant,
  parseTenants,
  type Route,
  type TenantOptions,
  textResponse,
} from "@skald/transport";

export interface TenantLimitsDeps extends TenantOptions {
  readonly limitsOf: (tenant: string) => Limits;
  /** Names of limits that clients may see. */
  readonly published: readonly string[];
}

/** The limits of the tenant that asks, as YAML. */
export function tenantLimitsRoutes(deps: TenantLimitsDeps): Route[] {
  const handler: Route["handler"] = ({ headers }) => {
    const all = printedLimits(deps.limitsOf(parseTenant(headers["x-scope-orgid"], deps)));
    const known = Object.entries(all).filter(([name]) => deps.published.includes(name));
    return textResponse(200, formatYaml(Object.fromEntries(known)));
  };
  return [{ methods: ["GET"], path: "/config/tenant/v1/limits", handler, docs: limitsDocs }];
}

const limitsSection = readSchema(limitsConfig);

function printedLimits(limits: Limits): Record<string, unknown> {
  return printableConfig(limitsSection, limits);
}

const limitsDocs: EndpointDocs = {
  group: "Operation",
  tenant: "one",
  says: "The limits that hold for the tenant, of those in `tenant_limits_allow_publish`.",
  answers: { 200: "YAML." },
  example: { status: 200, contains: "max_query_series:" },
};

export interface DrilldownDeps extends TenantLimitsDeps {
  readonly patternsEnabled: () => boolean;
  /** The version of the API. */
  readonly version: string;
}

/** Limits that Logs Drilldown asks for, of features that Skald does not have. */
const notBuilt = { metric_aggregation_enabled: false, pattern_persistence_enabled: false };

/** What Logs Drilldown asks about its tenant; of several tenants, about the first. */
export function drilldownRoutes(deps: DrilldownDeps): Route[] {
  const handler: Route["handler"] = ({ headers }) => {
    const [tenant] = parseTenants(headers["x-scope-orgid"], deps);
    const all = { ...notBuilt, ...printedLimits(deps.limitsOf(tenant as string)) };
    const known = deps.published.filter((name) => name in all);
    return jsonResponse(200, {
      limits: Object.fromEntries(known.map((name) => [name, all[name as keyof typeof all]])),
      pattern_ingester_enabled: deps.patternsEnabled(),
      version: deps.version,
    });
  };
  return ["/service/api/v1", "/loki/api/v1"].map((prefix) => ({
    ...{ methods: ["GET"], path: `${prefix}/drilldown-limits`, handler, docs: drilldownDocs },
  }));
}

const drilldownDocs: EndpointDocs = {
  group: "Explore",
  says: "Limits of the tenant that a client may know, and what is switched on.",
  tenant: "many",
  answers: { 200: "`{limits, pattern_ingester_enabled, version}`." },
  example: { status: 200, contains: '"limits":' },
};

/** The tenants with their streams and push rates; a rate is measured from one request to the next. */
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
  return [{ methods: ["GET"], path: "/distributor/all_user_stats", handler, docs: statsDocs }];
}

const statsDocs: EndpointDocs = {
  group: "Operation",
  tenant: "none",
  says: "Tenants with the number of their streams and the rate at which they push.",
  answers: {
    200: "`[{userID, ingestionRate, numSeries, APIIngestionRate, RuleIngestionRate, replicationFactor}]`, rates in lines per second.",
  },
  example: { status: 200, contains: "[" },
  differs: "the reference serves it in other products of its family only",
};
