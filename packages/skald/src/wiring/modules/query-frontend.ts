import {
  ClientQueries,
  patternRoutes,
  queryLogger,
  queryRoutes,
  queryTenants,
  TailEndpoints,
} from "@skald/frontend";
import { systemClock } from "@skald/model";
import type { Config } from "../../config/root.js";
import { drilldownRoutes } from "../../http/tenant-routes.js";
import { type UiConfig, uiRoutes } from "../../http/ui-routes.js";
import { queryObserver } from "../../query/metrics.js";
import { type BuiltModule, type ModuleContext, type Parts, tenancyOf } from "../module.js";
import { buildResultStores } from "../result-stores.js";

/** The query API. */
export function buildFrontend(
  parts: Parts,
  { build, config, log, metrics }: ModuleContext,
): BuiltModule {
  const { lanes, limits, tailer, patterns } = parts;
  const tenancy = {
    ...tenancyOf(config),
    multiTenantQueries: config.querier.multi_tenant_queries_enabled,
  };
  const { stores, service } = buildResultStores(config, { log, metrics });
  const observe = queryObserver(metrics);
  const logQuery = queryLogger({
    log,
    logsAll: config.frontend.query_stats_enabled,
    longerThanMs: config.frontend.log_queries_longer_than,
  });
  const queries = new ClientQueries({
    ...{ ...tenancy, lanes, stores },
    isElsewhere: lanes.isElsewhere,
    limitsOf: (tenant) => limits.of(tenant),
    onQuery: (facts) => {
      observe(facts);
      logQuery?.(facts);
    },
    parquetAnswers: config.frontend.support_parquet_encoding,
    alignToStep: config.query_range.align_queries_with_step,
  });
  parts.frontend = queries;
  const drilldown = drilldownRoutes({
    ...tenancyOf(config),
    limitsOf: (tenant) => limits.of(tenant),
    published: config.tenant_limits_allow_publish,
    patternsEnabled: () => config.pattern_ingester.enabled,
    version: build.version,
  });
  const tails = new TailEndpoints({
    ...tenancyOf(config),
    ingester: tailer,
    plan: (request) => queries.planTail(request),
    history: (request) => queries.serve("tail_history", request),
    maxTailsOf: (tenant) => limits.of(tenant).max_concurrent_tail_requests,
    maxDurationMs: config.querier.tail_max_duration,
    clock: systemClock,
  });
  const open = "Tails that are open.";
  metrics.gaugeOf("querier_tail_active", open, () => tails.active);
  const running = "Requests for queries, labels and the like that are being served.";
  metrics.gaugeOf("query_frontend_queries_in_progress", running, () => queries.running);
  const queried = queryRoutes((endpoint, request) => queries.serve(endpoint, request));
  return {
    service,
    routes: [
      ...queried,
      ...tails.routes,
      ...patternRoutes({
        patterns,
        tenantsOf: (request) => queryTenants(request, tenancy),
        parse: (request) => queries.read("patterns", request),
      }),
      ...drilldown,
      ...(config.ui.enabled ? uiRoutes({ config: uiConfigOf(config, build.productVersion) }) : []),
    ],
    socketRoutes: tails.socketRoutes,
  };
}

function uiConfigOf(config: Config, version: string): UiConfig {
  return {
    ...{ version, title: config.ui.title, links: config.ui.links },
    multiTenant: config.auth_enabled,
    patterns: config.pattern_ingester.enabled,
    deletes: config.compactor.retention_enabled,
    rules: config.ruler.enable_api,
    parquet: config.frontend.support_parquet_encoding,
    targets: config.target,
  };
}
