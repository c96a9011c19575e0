import { internal } from "@skald/model";
import type { Need } from "@skald/transport";

/**
 * What each path of the API needs where there is a users file. The names of the reference need what the published ones do. A path
 * that is not here keeps a process with a users file from starting.
 */
const pathsByNeed: Readonly<Record<Need, readonly string[]>> = {
  // The files of the interface are the same for everybody; its first request makes a browser ask who is there.
  // Probes of collectors send no token, and learn only that there is one.
  open: [
    "/services/collector/health",
    "/services/collector/health/1.0",
    "/ready",
    "/",
    "/ui",
    "/ui/",
    "/ui/:view",
    "/ui/assets/:file",
  ],
  write: [
    "/service/api/v1/push",
    "/api/legacy/push",
    "/otlp/v1/logs",
    "/insert/jsonline",
    "/insert/journald/upload",
    "/elasticsearch/_bulk",
    "/elasticsearch/:index/_bulk",
    "/elasticsearch/:index/_doc",
    "/elasticsearch/:index/_doc/:id",
    "/elasticsearch/:index/_create/:id",
    "/elasticsearch",
    "/elasticsearch/",
    "/elasticsearch/_license",
    "/elasticsearch/_xpack",
    "/elasticsearch/_cluster/health",
    "/elasticsearch/_cat/health",
    "/elasticsearch/_nodes",
    "/elasticsearch/_nodes/http",
    "/elasticsearch/_index_template/:name",
    "/elasticsearch/_component_template/:name",
    "/elasticsearch/_template/:name",
    "/elasticsearch/_ingest/pipeline/:name",
    "/elasticsearch/_ilm/policy/:name",
    "/elasticsearch/_data_stream/:name",
    "/services/collector",
    "/services/collector/event",
    "/services/collector/event/1.0",
    "/services/collector/raw",
    "/services/collector/raw/1.0",
    "/services/collector/ack",
    "/api/v2/logs",
    "/v1/input",
    "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
  ],
  read: [
    "/service/api/v1/query",
    "/service/api/v1/query_range",
    "/service/api/v1/labels",
    "/service/api/v1/label",
    "/service/api/v1/label/:name/values",
    "/service/api/v1/series",
    "/service/api/v1/index/stats",
    "/service/api/v1/index/shards",
    "/service/api/v1/index/volume",
    "/service/api/v1/index/volume_range",
    "/service/api/v1/detected_labels",
    "/service/api/v1/detected_fields",
    "/service/api/v1/detected_field/:name/values",
    "/service/api/v1/explain",
    "/service/api/v1/patterns",
    "/service/api/v1/tail",
    "/service/api/v1/format_query",
    "/service/api/v1/drilldown-limits",
    "/service/api/v1/status/buildinfo",
    "/api/legacy/query",
    "/api/legacy/label",
    "/api/legacy/label/:name/values",
    "/api/legacy/series",
    "/api/legacy/tail",
    "/config/tenant/v1/limits",
    "/ui/config.json",
    // Grafana shows rules and alerts by these.
    "/compat/api/v1/rules",
    "/compat/api/v1/alerts",
  ],
  rules: [
    "/service/api/v1/rules",
    "/service/api/v1/rules/:namespace",
    "/service/api/v1/rules/:namespace/:group",
    "/api/legacy/rules",
    "/api/legacy/rules/:namespace",
    "/api/legacy/rules/:namespace/:group",
  ],
  delete: ["/service/api/v1/delete"],
  // It has the names of tenants, which such a user knows anyway: who collects metrics need not be an operator.
  "read all": ["/metrics"],
  operate: [
    "/config",
    "/services",
    "/log_level",
    "/memberlist",
    "/debug/pprof/profile",
    "/debug/pprof/heap",
    "/flush",
    "/ingester/prepare_shutdown",
    "/ingester/shutdown",
    "/ingester/flush_shutdown",
    "/distributor/all_user_stats",
    "/ring",
    "/distributor/ring",
    "/pattern/ring",
    "/compactor/ring",
    "/ruler/ring",
    "/scheduler/ring",
    "/indexgateway/ring",
  ],
};

const needs: ReadonlyMap<string, Need> = new Map(
  (Object.keys(pathsByNeed) as Need[]).flatMap((need) =>
    pathsByNeed[need].map((path) => [path, need] as const),
  ),
);

/** The published paths of the table. */
export const knownPaths: readonly string[] = [...needs.keys()];

/** What a path needs, as its route has it; throws internal for one that is not in the table. */
export function needOf(path: string): Need {
  const need = needs.get(path) ?? needs.get(publishedName(path));
  if (need === undefined) throw internal(`nobody said which right ${path} needs: route-rights.ts`);
  return need;
}

function publishedName(path: string): string {
  return path
    .replace(/^\/loki\/api\//, "/service/api/")
    .replace(/^\/api\/prom\//, "/api/legacy/")
    .replace(/^\/prometheus\/api\//, "/compat/api/");
}
