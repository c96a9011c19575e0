import { type Limits, limitsConfig, printableConfig, readSchema } from "@skald/runtime/config";
import {
  type EndpointDocs,
  jsonResponse,
  parseTenants,
  type Route,
  type TenantOptions,
} from "@skald/transport";

export interface DrilldownDeps extends TenantOptions {
  readonly limitsOf: (tenant: string) => Limits;
  /** Names of limits that a client may know. */
  readonly published: readonly string[];
  readonly patternsEnabled: () => boolean;
  /** Of the API. */
  readonly version: string;
}

const docs: EndpointDocs = {
  group: "Explore",
  says: "Limits of the tenant that a client may know, and what is switched on.",
  tenant: "many",
  answers: { 200: "`{limits, pattern_ingester_enabled, version}`." },
  example: { status: 200, contains: '"limits":' },
};

/** Limits that Logs Drilldown asks for, of what Skald does not do. */
const notBuilt = { metric_aggregation_enabled: false, pattern_persistence_enabled: false };

/** What Logs Drilldown asks about its tenant; of several tenants, about the first. */
export function drilldownRoutes(deps: DrilldownDeps): Route[] {
  const section = readSchema(limitsConfig);
  return ["/service/api/v1", "/loki/api/v1"].map((prefix) => ({
    methods: ["GET"],
    path: `${prefix}/drilldown-limits`,
    docs,
    handler: ({ headers }) => {
      const [tenant] = parseTenants(headers["x-scope-orgid"], deps);
      const all = { ...notBuilt, ...printableConfig(section, deps.limitsOf(tenant as string)) };
      const known = deps.published.filter((name) => name in all);
      return jsonResponse(200, {
        limits: Object.fromEntries(known.map((name) => [name, all[name as keyof typeof all]])),
        pattern_ingester_enabled: deps.patternsEnabled(),
        version: deps.version,
      });
    },
  }));
}
