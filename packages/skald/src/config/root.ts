import { compactorClientConfig, compactorConfig } from "@skald/compactor/config";
import { distributorConfig } from "@skald/distributor/config";
import { frontendConfig, queryRangeConfig } from "@skald/frontend/config";
import { ingesterClientConfig, ingesterConfig } from "@skald/ingester/config";
import { frontendWorkerConfig, querierConfig } from "@skald/querier/config";
import { experiment, field, gone, limitsConfig, runtimeConfig } from "@skald/runtime/config";
import { authConfig, lbacConfig } from "./sections/access.js";
import { indexGatewayConfig, querySchedulerConfig } from "./sections/backend.js";
import { commonConfig } from "./sections/common.js";
import { memberlistConfig } from "./sections/memberlist.js";
import { analyticsConfig, operationalConfig, tracingConfig } from "./sections/observability.js";
import { patternIngesterConfig } from "./sections/pattern-ingester.js";
import { rulerConfig, rulerStorageConfig } from "./sections/ruler.js";
import { schemaConfig } from "./sections/schema-config.js";
import { serverConfig } from "./sections/server.js";
import { chunkStoreConfig, storageConfig } from "./sections/storage-config.js";

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
  ballast_bytes: field.size(
    "0B",
    "memory kept to calm a garbage collector",
    "config.ballast-bytes",
    { unused: "there is no Go heap to calm" },
  ),
  shutdown_delay: field.duration(
    "0s",
    "time between being asked to end and not being ready any more",
    "shutdown-delay",
    { unused: "the end begins at once" },
  ),
  metrics_namespace: field.text("loki", "start of the names of metrics", "metrics-namespace"),
  tenant_limits_allow_publish: field.list(
    publishedLimits,
    "limits that a client may ask for about its own tenant",
    "limits.tenant-limits-allow-publish",
  ),
};

const experimental = { why: experiment, switch: "enabled" };
const enterprise = "is a key of an enterprise product";

/** The whole configuration. */
export const rootConfig = field.section(
  "",
  {
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
    chunk_store_config: chunkStoreConfig,
    compactor: compactorConfig,
    compactor_grpc_client: compactorClientConfig,
    ruler: rulerConfig,
    ruler_storage: rulerStorageConfig,
    memberlist: memberlistConfig,
    operational_config: operationalConfig,
    analytics: analyticsConfig,
    tracing: tracingConfig,
    lbac: lbacConfig,
    auth: authConfig,
  },
  {
    ignored: {
      bloom_build: experimental,
      bloom_gateway: experimental,
      ingest_limits: experimental,
      ingest_limits_frontend: experimental,
      ingest_limits_frontend_client: experimental,
      kafka_config: experimental,
      query_engine: { why: experiment, switch: "enable" },
      dataobj: experimental,
      block_builder: experimental,
      ui: experimental,
      internal_server: { why: "all is served on one port", switch: "enable" },
      profiling: "profiles of a Go program do not exist here",
      table_manager: "use compactor.retention_enabled instead",
      compactor_client: "use compactor_grpc_client instead",
      http_prefix: "use server.http_path_prefix instead",
      license: enterprise,
      admin_client: enterprise,
      cluster_name: enterprise,
      admin_api: enterprise,
      gateway: enterprise,
    },
    ignoredFlags: {
      "legacy-read-mode": gone,
      "log-config-reverse-order": "the order of the printed configuration does not change",
      "table-manager.retention-deletes-enabled": "use -compactor.retention-enabled instead",
      "table-manager.retention-period": "use -store.retention instead",
    },
  },
);

/** Values as they are used: durations and times in milliseconds, sizes in bytes; keys as in YAML. */
export type Config = Readonly<field.Values<typeof rootConfig>>;
