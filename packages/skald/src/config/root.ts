import { compactorConfig } from "@skald/compactor/config";
import { distributorConfig } from "@skald/distributor/config";
import { frontendConfig, queryRangeConfig } from "@skald/frontend/config";
import { ingesterClientConfig, ingesterConfig } from "@skald/ingester/config";
import { frontendWorkerConfig, querierConfig } from "@skald/querier/config";
import { field, limitsConfig, runtimeConfig } from "@skald/runtime/config";
import { indexGatewayConfig, querySchedulerConfig } from "./sections/backend.js";
import { commonConfig } from "./sections/common.js";
import { patternIngesterConfig } from "./sections/pattern-ingester.js";
import { rulerConfig, rulerStorageConfig } from "./sections/ruler.js";
import { schemaConfig } from "./sections/schema-config.js";
import { serverConfig } from "./sections/server.js";
import { storageConfig } from "./sections/storage-config.js";

/** Limits that a client may ask for about its own tenant. */
const publishedLimits = [
  "discover_log_levels",
  "discover_service_name",
  "log_level_fields",
  "max_entries_limit_per_query",
  "max_line_size_truncate",
  "max_query_bytes_read",
  "max_query_length",
  "max_query_lookback",
  "max_query_range",
  "max_query_series",
  "metric_aggregation_enabled",
  "otlp_config",
  "pattern_persistence_enabled",
  "query_timeout",
  "retention_period",
  "retention_stream",
  "volume_enabled",
  "volume_max_series",
];

const top = {
  target: field.list(
    ["all"],
    "services that this process runs; -list-targets shows them",
    "target",
  ),
  auth_enabled: field.toggle(
    true,
    "expect the tenant in the header X-Scope-OrgID; false: no_auth_tenant is used",
    "auth.enabled",
  ),
  no_auth_tenant: field.text("fake", "tenant when auth_enabled is false", "auth.no-auth-tenant"),
  metrics_namespace: field.text("loki", "start of the names of metrics", "metrics-namespace"),
  tenant_limits_allow_publish: field.list(
    publishedLimits,
    "limits that a client may ask for about its own tenant",
    "limits.tenant-limits-allow-publish",
  ),
};

const inFront = "is not built; let a proxy in front check who may read what, and remove the key";

/** The whole configuration. What is accepted beside it is in `ignored-keys.ts`. */
export const rootConfig = field.section("", {
  ...top,
  server: serverConfig,
  common: commonConfig,
  distributor: distributorConfig,
  ingester: ingesterConfig,
  ingester_client: ingesterClientConfig,
  pattern_ingester: patternIngesterConfig,
  querier: querierConfig,
  query_range: queryRangeConfig,
  frontend: frontendConfig,
  frontend_worker: frontendWorkerConfig,
  query_scheduler: querySchedulerConfig,
  index_gateway: indexGatewayConfig,
  limits_config: limitsConfig,
  runtime_config: runtimeConfig,
  schema_config: schemaConfig,
  storage_config: storageConfig,
  compactor: compactorConfig,
  ruler: rulerConfig,
  ruler_storage: rulerStorageConfig,
  memberlist: field.section("Gossip between instances; rings are not kept by it.", {
    join_members: field.list(
      [],
      "members to join; where there are some, rings are taken to be kept by gossip",
      "memberlist.join",
    ),
  }),
  tracing: field.section(
    "Spans of requests, queries, flushes and so on, sent by OTLP to where the variables `OTEL_*` of the environment say.",
    { enabled: field.toggle(false, "send them", "tracing.enabled") },
  ),
  ui: field.section("What pages in a browser may do.", {
    allowed_origins: field.list(
      [],
      "other origins, https://host:port, whose pages may open WebSockets and send what is not a GET",
      "ui.allowed-origins",
    ),
  }),
  lbac: field.section("Who may see which streams.", {
    enabled: field.toggle(false, "look at the header X-Prom-Label-Policy", "lbac.enabled", {
      refused: { value: true, why: `access by labels ${inFront}` },
    }),
  }),
  auth: field.section("Access tokens of an enterprise product.", {
    type: field.text("", "enterprise: tokens are checked", undefined, {
      refused: { value: "enterprise", why: `a check of access tokens ${inFront}` },
    }),
  }),
});

/** Values as they are used: durations and times in milliseconds, sizes in bytes; keys as in YAML. */
export type Config = Readonly<field.Values<typeof rootConfig>>;
