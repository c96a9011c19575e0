import { compactorConfig } from "@skald/compactor/config";
import { distributorConfig } from "@skald/distributor/config";
import { syslogConfig } from "@skald/distributor/syslog-config";
import { frontendConfig, queryRangeConfig } from "@skald/frontend/config";
import { ingesterClientConfig, ingesterConfig } from "@skald/ingester/config";
import { frontendWorkerConfig, querierConfig } from "@skald/querier/config";
import { rulerKeys } from "@skald/ruler/config";
import {
  field,
  grpcClientBlock,
  lifecyclerBlock,
  limitsConfig,
  ringBlock,
  runtimeConfig,
  tokenFields,
} from "@skald/runtime/config";
import { serverConfig } from "./server.js";
import {
  directoryBlock,
  objectStoreBlock,
  s3Block,
  schemaConfig,
  storageConfig,
} from "./storage.js";

/** Limits that a client may ask for about its own tenant. */
const publishedLimits = `
  discover_log_levels discover_service_name log_level_fields max_entries_limit_per_query
  max_line_size_truncate max_query_bytes_read max_query_length max_query_lookback
  max_query_range max_query_series metric_aggregation_enabled otlp_config
  pattern_persistence_enabled query_timeout retention_period retention_stream
  volume_enabled volume_max_series
`
  .trim()
  .split(/\s+/);

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
  max_tenants_in_metrics: field.integer(
    1000,
    "tenants that metrics tell apart; those that come later are counted together, as `other tenants`; 0: no limit",
    "metrics.max-tenants",
  ),
  tenant_limits_allow_publish: field.list(
    publishedLimits,
    "limits that a client may ask for about its own tenant",
    "limits.tenant-limits-allow-publish",
  ),
};

const commonStorage = field.section("The object store of everything; one child is used.", {
  s3: s3Block("common.storage."),
  filesystem: field.section("Directories.", {
    chunks_directory: field.text(
      "",
      "directory of the data",
      "common.storage.filesystem.chunk-directory",
    ),
    rules_directory: field.text(
      "",
      "directory of the rules",
      "common.storage.filesystem.rules-directory",
    ),
  }),
  object_store: objectStoreBlock("common.storage.object-store."),
});

/** `common`: keys from which others take their defaults. */
const commonConfig = field.section(
  "Keys from which others take their defaults.",
  {
    path_prefix: field.text("", "directory in which all others are by default"),
    storage: commonStorage,
    persist_tokens: field.toggle(false, "keep the tokens of rings in path_prefix"),
    replication_factor: field.integer(1, "copies of each stream", {
      min: 1,
    }),
    ring: ringBlock("common.storage.ring", {
      ...tokenFields("common.storage.ring"),
      zone_awareness_enabled: field.toggle(false, "place copies in different zones"),
    }),
    instance_interface_names: field.list(
      [],
      "network interfaces of which one gives the address; empty: private ones",
    ),
    instance_addr: field.text("", "address told to others"),
  },
  "common.",
);

/** `query_scheduler`: the queue between query frontends and queriers. */
const querySchedulerConfig = field.section(
  "Queues queries between frontends and queriers.",
  {
    max_outstanding_requests_per_tenant: field.integer(
      32_000,
      "queries of a tenant that may wait; more are answered with 429",
      { min: 1 },
    ),
    max_queue_hierarchy_levels: field.integer(
      3,
      "depth of the header X-Service-Actor-Path; 0: not looked at",
    ),
    use_scheduler_ring: field.toggle(
      false,
      "find schedulers by a ring; default true when no address is set",
    ),
    scheduler_ring: ringBlock("query-scheduler.ring", {}),
  },
  "query-scheduler.",
);

/** `index_gateway`: answers which data there is. */
const indexGatewayConfig = field.section(
  "Answers which data there is.",
  {
    mode: field.choice(
      "simple",
      ["simple", "ring"],
      "how they are found: by server_address, or by the ring",
    ),
    ring: ringBlock("index-gateway.ring", {
      replication_factor: field.integer(3, "gateways that a tenant's calls go to", { min: 1 }),
    }),
  },
  "index-gateway.",
);

const flag = (name: string): string => `pattern-ingester.${name}`;

/** `pattern_ingester`: patterns of lines. */
const patternIngesterConfig = field.section(
  "Finds patterns in new lines.",
  {
    enabled: field.toggle(false, "run it"),
    lifecycler: lifecyclerBlock({ ring: flag("ring"), member: flag("") }, {}),
    client_config: field.section("How it is called.", {
      grpc_client_config: grpcClientBlock(flag("client")),
      remote_timeout: field.duration("5s", "time limit", flag("client.timeout")),
    }),
    flush_check_period: field.duration("1m", "pause between looks"),
    max_clusters: field.integer(300, "patterns of a stream"),
    max_eviction_ratio: field.float(0.25, "part of evictions above which a stream is given up"),
    max_allowed_line_length: field.integer(3000, "longer lines are not looked at"),
    retain_for: field.duration("3h", "time to keep patterns"),
    pattern_sample_interval: field.duration("10s", "resolution", flag("sample-interval")),
  },
  "pattern-ingester.",
);

const ruleStorage = field.section("Where rules are stored.", {
  type: field.choice(
    "",
    ["", "local", "s3", "gcs", "azure", "swift", "cos", "bos", "alibabacloud"],
    "kind of store; default: that of the data",
    "ruler.storage.type",
  ),
  local: field.section("A directory.", {
    directory: field.text(
      "",
      "the directory; what is changed over the API is written there too",
      "ruler.storage.local.directory",
    ),
  }),
});

/** `ruler`: alerts and recording rules. */
const rulerConfig = field.section("Evaluates rules.", {
  ...rulerKeys,
  storage: ruleStorage,
});

/** `ruler_storage`: where rules are stored, in the newer form. */
const rulerStorageConfig = field.section(
  "Where rules are stored, in the newer form.",
  {
    backend: field.choice(
      "filesystem",
      ["filesystem", "local", "s3"],
      "kind of store; s3: the bucket of storage_config",
    ),
    local: field.section("A directory.", {
      directory: field.text("", "the directory"),
    }),
    filesystem: directoryBlock(),
  },
  "ruler-storage.",
);

const inFront = "is not built; let a proxy in front check who may read what, and remove the key";

/** The whole configuration. What is accepted beside it is in `ignored-keys.ts`. */
export const rootConfig = field.section("", {
  ...top,
  server: serverConfig,
  common: commonConfig,
  distributor: distributorConfig,
  syslog: syslogConfig,
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
  ui: field.section("The web interface, and what pages in a browser may do.", {
    enabled: field.toggle(true, "serve the web interface below /ui/", "ui.enabled"),
    title: field.text(
      "",
      "shown beside the name of the program, such as the name of a site",
      "ui.title",
    ),
    links: field.sections(
      field.section("A link.", {
        field: field.text("", "label or field, such as trace_id"),
        url: field.text("", "where its values lead; {value} stands for the value"),
      }),
      "links of the values of fields",
      { check: linkProblem },
    ),
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
  auth: field.section("Who may send requests.", {
    users_file: field.text(
      "",
      "YAML file with the users, their passwords or tokens, tenants and rights, read again when it changes; empty: everybody may do everything",
      "auth.users-file",
    ),
    type: field.text("", "enterprise: tokens are checked", undefined, {
      refused: { value: "enterprise", why: `a check of access tokens ${inFront}` },
    }),
  }),
});

/** What is wrong with links; undefined when they are good. A page follows them, so that they must not be code. */
function linkProblem(links: readonly { field: string; url: string }[]): string | undefined {
  for (const { field: name, url } of links) {
    if (name === "") return "a link needs a field";
    if (!/^https?:\/\//.test(url) || !url.includes("{value}"))
      return `the url of ${name} must begin with https:// or http:// and contain {value}`;
  }
  return undefined;
}

/** Values as they are used: durations and times in milliseconds, sizes in bytes; keys as in YAML. */
export type Config = Readonly<field.Values<typeof rootConfig>>;
