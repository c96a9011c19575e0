import {
  certificateFields,
  field,
  grpcClientBlock,
  ringBlock,
  tokenFields,
} from "@skald/runtime/config";

const alerting = {
  external_url: field.text("", "address of the ruler in alerts", "ruler.external.url"),
  datasource_uid: field.text("", "data source in links of alerts", "ruler.datasource-uid"),
  external_labels: field.textMap("labels of all alerts"),
  alertmanager_url: field.list([], "where alerts are sent", "ruler.alertmanager-url"),
  enable_alertmanager_discovery: field.toggle(
    false,
    "find them by DNS",
    "ruler.alertmanager-discovery",
  ),
  alertmanager_refresh_interval: field.duration(
    "1m",
    "pause between look-ups",
    "ruler.alertmanager-refresh-interval",
  ),
  alert_relabel_configs: field.maps("changes to labels of alerts"),
  notification_queue_capacity: field.integer(
    10_000,
    "alerts that may wait",
    "ruler.notification-queue-capacity",
  ),
  notification_timeout: field.duration("10s", "time limit", "ruler.notification-timeout"),
  alertmanager_client: field.section("How alerts are sent.", {
    basic_auth_username: field.text("", "user", "ruler.alertmanager-client.basic-auth-username"),
    basic_auth_password: field.secret("password", "ruler.alertmanager-client.basic-auth-password"),
    type: field.text("Bearer", "kind of credentials", "ruler.alertmanager-client.type"),
    credentials: field.secret("credentials", "ruler.alertmanager-client.credentials"),
    credentials_file: field.text(
      "",
      "file that holds them",
      "ruler.alertmanager-client.credentials-file",
    ),
  }),
  for_outage_tolerance: field.duration(
    "1h",
    "longest outage after which pending alerts go on",
    "ruler.for-outage-tolerance",
  ),
  for_grace_period: field.duration(
    "10m",
    "time that they still need after it",
    "ruler.for-grace-period",
  ),
  resend_delay: field.duration("1m", "pause between two sends", "ruler.resend-delay"),
};

const evaluating = {
  evaluation_interval: field.duration(
    "1m",
    "pause between evaluations",
    "ruler.evaluation-interval",
  ),
  poll_interval: field.duration("1m", "pause between looks for rules", "ruler.poll-interval"),
  evaluation: field.section("How rules are evaluated.", {
    mode: field.choice(
      "local",
      ["local", "remote"],
      "by whom: this process, or the one at query_frontend.address",
      "ruler.evaluation.mode",
    ),
    max_jitter: field.duration(
      "0s",
      "most by which a group is late, by its name",
      "ruler.evaluation.max-jitter",
    ),
    query_frontend: field.section("The query frontend, for remote.", {
      address: field.text(
        "",
        "its address, http://host:port",
        "ruler.evaluation.query-frontend.address",
      ),
      // The address says whether TLS is spoken, and Node chooses its version and ciphers.
      ...certificateFields("ruler.evaluation.query-frontend"),
    }),
  }),
  enable_api: field.toggle(true, "serve the rules API", "ruler.enable-api"),
  enabled_tenants: field.list([], "tenants served; empty: all", "ruler.enabled-tenants"),
  disabled_tenants: field.list([], "tenants not served", "ruler.disabled-tenants"),
  query_stats_enabled: field.toggle(
    false,
    "log statistics of evaluations",
    "ruler.query-stats-enabled",
  ),
  disable_rule_group_label: field.toggle(
    false,
    "leave the group out of metrics",
    "ruler.disable-rule-group-label",
  ),
};

const sharding = {
  enable_sharding: field.toggle(
    false,
    "spread rules over rulers; default true where ring.kvstore.store is redis",
    "ruler.enable-sharding",
  ),
  sharding_strategy: field.choice(
    "default",
    ["default", "shuffle-sharding"],
    "how tenants are spread: over all rulers, or over limits_config.ruler_tenant_shard_size of them",
    "ruler.sharding-strategy",
  ),
  sharding_algo: field.choice(
    "by-group",
    ["by-group", "by-rule"],
    "what is spread",
    "ruler.sharding-algo",
  ),
  ring: ringBlock("ruler.ring", tokenFields("ruler.ring"), {
    heartbeatPeriod: "5s",
    keyPrefix: "rulers/",
  }),
  ruler_client: grpcClientBlock("ruler.client"),
};

const remoteWrite = {
  wal: field.section("Samples that wait to be sent.", {
    dir: field.text("ruler-wal", "directory; default path_prefix/ruler-wal", "ruler.wal.dir"),
    truncate_frequency: field.duration(
      "1h",
      "pause between looks for what can be deleted",
      "ruler.wal.truncate-frequency",
    ),
    min_age: field.duration("5m", "time to keep what was sent", "ruler.wal.min-age"),
    max_age: field.duration("4h", "time to keep what could not be sent", "ruler.wal.max-age"),
  }),
  wal_cleaner: field.section("Removal of left-over logs.", {
    min_age: field.duration("12h", "age", "ruler.wal-cleaner.min-age"),
    period: field.duration("0s", "pause; 0: never", "ruler.wal-cleaner.period"),
  }),
  remote_write: field.section(
    "Where samples of recording rules and the history of alerts (ALERTS, ALERTS_FOR_STATE) are sent.",
    {
      clients: field.mapOfMaps("name -> client, as in Prometheus"),
      client: field.map("older form of clients"),
      enabled: field.toggle(false, "send them", "ruler.remote-write.enabled"),
      config_refresh_period: field.duration(
        "10s",
        "pause between looks at overrides",
        "ruler.remote-write.config-refresh-period",
      ),
      add_org_id_header: field.toggle(
        true,
        "send the tenant as a header",
        "ruler.remote-write.add-org-id-header",
      ),
    },
  ),
};

/** The keys of `ruler` but `storage`, which is about stores that the program knows. */
export const rulerKeys = {
  ...alerting,
  ...evaluating,
  ...sharding,
  ...remoteWrite,
};

const allKeys = field.section("", rulerKeys);

/** `ruler`, as it is set. */
export type RulerConfig = Readonly<field.Values<typeof allKeys>>;
