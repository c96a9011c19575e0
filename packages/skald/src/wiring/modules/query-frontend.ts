import { patternRoutes, queryRoutes, TailEndpoints } from "@skald/frontend";
import { systemClock } from "@skald/model";
import { drilldownRoutes } from "../../http/tenant-routes.js";
import { queryObserver } from "../../query/metrics.js";
import { QueryThreads } from "../../query/query-threads.js";
import { type BuiltModule, type ModuleContext, type Parts, tenancyOf } from "../module.js";
import { buildResultStores } from "../result-stores.js";

/** The query API. */
export function buildFrontend(
  parts: Parts,
  { build, config, log, metrics }: ModuleContext,
): BuiltModule {
  const { queries, limits, tailer, patterns } = parts;
  const routes = {
    ...tenancyOf(config),
    multiTenantQueries: config.querier.multi_tenant_queries_enabled,
    parquetAnswers: config.frontend.support_parquet_encoding,
    alignToStep: config.query_range.align_queries_with_step,
  };
  const { stores, service } = buildResultStores(config, { log, metrics });
  const threads = new QueryThreads({
    ...queries,
    onQuery: queryObserver(metrics),
    limitsOf: (tenant) => limits.of(tenant),
    stores,
    routes,
  });
  parts.frontend = threads;
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
    history: (request) => threads.serve("tail_history", request),
    maxTailsOf: (tenant) => limits.of(tenant).max_concurrent_tail_requests,
    maxDurationMs: config.querier.tail_max_duration,
    clock: systemClock,
  });
  const queried = queryRoutes((endpoint, request) => threads.serve(endpoint, request));
  return {
    service,
    routes: [
      ...queried,
      ...tails.routes,
      ...patternRoutes({ ...routes, patterns, clock: systemClock }),
      ...drilldown,
    ],
    socketRoutes: tails.socketRoutes,
  };
}
