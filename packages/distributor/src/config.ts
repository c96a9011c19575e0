import { experiment, field, ringBlock } from "@skald/runtime/config";

/** Resource attributes that become labels of the stream unless a tenant's rules say else. */
const indexLabelAttributes = [
  "service.name",
  "service.namespace",
  "service.instance.id",
  "deployment.environment",
  "deployment.environment.name",
  "cloud.region",
  "cloud.availability_zone",
  "k8s.cluster.name",
  "k8s.namespace.name",
  "k8s.pod.name",
  "k8s.container.name",
  "container.name",
  "k8s.replicaset.name",
  "k8s.deployment.name",
  "k8s.statefulset.name",
  "k8s.daemonset.name",
  "k8s.cronjob.name",
  "k8s.job.name",
];

const rateStore = field.section(
  "Rates of streams, asked of the ingesters.",
  {
    max_request_parallelism: field.integer(
      200,
      "requests at a time",
      "distributor.rate-store.max-request-parallelism",
    ),
    stream_rate_update_interval: field.duration(
      "1s",
      "pause between requests",
      "distributor.rate-store.stream-rate-update-interval",
    ),
    ingester_request_timeout: field.duration(
      "500ms",
      "time limit of a request",
      "distributor.rate-store.ingester-request-timeout",
    ),
    debug: field.toggle(false, "log the rates", "distributor.rate-store.debug"),
  },
  { unused: "busy streams are not split yet" },
);

/** `distributor`: how pushes are taken in. */
export const distributorConfig = field.section(
  "Takes pushes in, checks them and hands them on.",
  {
    ring: ringBlock("distributor.ring", { heartbeatPeriod: "5s", use: "members" }),
    push_worker_count: field.integer(
      256,
      "pushes that are handed to ingesters at a time",
      "distributor.push-worker-count",
      { unused: "pushes are handed on as they come" },
    ),
    max_recv_msg_size: field.size(
      "100MB",
      "largest body of a push as sent",
      "distributor.max-recv-msg-size",
    ),
    max_decompressed_size: field.size(
      "128MB",
      "largest body of a push when unpacked; 128MB at most, because it is held in memory",
      "distributor.max-decompressed-size",
    ),
    max_inflight_bytes: field.size(
      "0B",
      "bytes of pushes that may be worked on at a time; 0: an eighth of the memory",
      "distributor.max-inflight-bytes",
    ),
    rate_store: rateStore,
    write_failures_logging: field.section(
      "Log lines about refused pushes.",
      {
        rate: field.size(
          "1KB",
          "bytes of such lines a second and tenant; 0: none",
          "distributor.write-failures-logging.rate",
        ),
        add_insights_label: field.toggle(
          false,
          "mark such lines with insight=true",
          "distributor.write-failures-logging.add-insights-label",
        ),
      },
      { unused: "refused pushes are not logged yet" },
    ),
    otlp_attribute_logging: field.section(
      "Log lines about OTLP attributes.",
      {
        rate: field.float(1, "lines a second", "distributor.otlp-attribute-logging.rate"),
        max_attributes: field.integer(
          20,
          "attributes in a line",
          "distributor.otlp-attribute-logging.max-attributes",
        ),
      },
      { unused: "attributes are not logged" },
    ),
    otlp_config: field.section("OTLP.", {
      default_resource_attributes_as_index_labels: field.list(
        indexLabelAttributes,
        "resource attributes that become labels",
        "distributor.otlp.default_resource_attributes_as_index_labels",
      ),
    }),
    default_policy_stream_mappings: field.priorityStreams("policy -> selectors, for all tenants", {
      unused: "streams have no policies yet",
    }),
    ingester_writes_enabled: field.toggle(
      true,
      "hand pushes to ingesters",
      "distributor.ingester-writes-enabled",
      { unused: "pushes always go to ingesters" },
    ),
  },
  {
    ignored: {
      kafka_writes_enabled: experiment,
      ingest_limits_enabled: experiment,
      ingest_limits_dry_run_enabled: experiment,
      dataobj_tee: { why: experiment, switch: "enabled" },
      circuit_breaker: { why: "pushes have no circuit breaker", switch: "enabled" },
    },
  },
);
