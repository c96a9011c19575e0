import { experiment, field } from "@skald/runtime/config";

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
  "Spans of requests, queries, flushes and so on, sent by OTLP to where the variables `OTEL_*` of the environment say.",
  {
    enabled: field.toggle(false, "send them", "tracing.enabled"),
  },
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
      log_otlp_attribute_expansion: "attributes are not logged",
    },
  },
);
