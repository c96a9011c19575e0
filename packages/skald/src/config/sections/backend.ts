import {
  experiment,
  field,
  gone,
  grpcClientBlock,
  oneProcess,
  ringBlock,
} from "@skald/runtime/config";

/** `query_scheduler`: the queue between query frontends and queriers. */
export const querySchedulerConfig = field.section(
  "Queues queries between frontends and queriers.",
  {
    max_outstanding_requests_per_tenant: field.integer(
      32_000,
      "parts of queries of a tenant that may wait; more are answered with 429",
      "query-scheduler.max-outstanding-requests-per-tenant",
      { min: 1 },
    ),
    max_queue_hierarchy_levels: field.integer(
      3,
      "depth of the header X-Service-Actor-Path; 0: not looked at",
      "query-scheduler.max-queue-hierarchy-levels",
    ),
    querier_forget_delay: field.duration(
      "0s",
      "time after which a lost querier is forgotten",
      "query-scheduler.querier-forget-delay",
    ),
    grpc_client_config: grpcClientBlock("query-scheduler.grpc-client-config"),
    use_scheduler_ring: field.toggle(
      false,
      "find schedulers by a ring; default true when no address is set",
      "query-scheduler.use-scheduler-ring",
    ),
    scheduler_ring: ringBlock("query-scheduler.ring"),
  },
  { unused: oneProcess },
);

/** `index_gateway`: answers which data there is. */
export const indexGatewayConfig = field.section(
  "Answers which data there is.",
  {
    mode: field.choice(
      "simple",
      ["simple", "ring"],
      "whether they share work",
      "index-gateway.mode",
    ),
    ring: ringBlock("index-gateway.ring"),
  },
  { unused: oneProcess },
);

/** `runtime_config`: overrides that can change while the process runs. */
export const runtimeConfig = field.section(
  "Overrides that can change while the process runs.",
  {
    file: field.list([], "files or http(s) addresses; later ones win", "runtime-config.file"),
    period: field.duration("10s", "pause between looks at them", "runtime-config.reload-period", {
      min: 1,
    }),
  },
  { ignored: { "http_client_*": gone } },
);

const nothingSent = "nothing is ever sent";

/** `analytics`: nothing is ever reported. */
export const analyticsConfig = field.section(
  "Usage reports: none are ever sent.",
  {
    reporting_enabled: field.toggle(true, "send reports", "reporting.enabled", {
      unused: nothingSent,
      holds: () => true,
    }),
    usage_stats_url: field.text("", "where to", "reporting.usage-stats-url", {
      unused: nothingSent,
    }),
    proxy_url: field.text("", "by which proxy", "reporting.proxy-url", { unused: nothingSent }),
  },
  { ignored: { tls_config: nothingSent } },
);

/** `tracing`: spans of requests. */
export const tracingConfig = field.section(
  "Spans of requests.",
  {
    enabled: field.toggle(false, "send them", "tracing.enabled"),
  },
  { unused: "spans are not recorded yet" },
);

const log = (what: string, flag: string) =>
  field.toggle(false, `log ${what}`, `operation-config.${flag}`);

/** `operational_config`: what is logged to find faults. */
export const operationalConfig = field.section(
  "What is logged to find faults.",
  {
    log_stream_creation: log("new streams", "log-stream-creation"),
    log_push_request: log("pushes", "log-push-request"),
    log_push_request_streams: log("streams of pushes", "log-push-request-streams"),
    log_hash_of_labels: log("hashes of labels", "log-hash-of-labels"),
    log_duplicate_metrics: log("how many entries came twice", "log-duplicate-metrics"),
    log_duplicate_stream_info: log("streams with such entries", "log-duplicate-stream-info"),
    log_service_name_discovery: log("how service names were found", "log-service-name-discovery"),
    limited_log_push_errors: field.toggle(
      true,
      "log refused pushes, at a limited rate",
      "operation-config.limited-log-push-errors",
    ),
  },
  {
    unused: "these lines are not logged yet",
    ignored: {
      filter_push_request_streams_ips: experiment,
      log_otlp_attribute_expansion: "OTLP is not taken in yet",
    },
  },
);
