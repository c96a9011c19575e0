import { field, type Limits, ringBlock } from "@skald/runtime/config";

/** Resource attributes that become labels unless a tenant's rules say otherwise. */
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

/** The section `distributor` of the configuration. */
export const distributorConfig = field.section("Takes pushes in, checks them and hands them on.", {
  ring: ringBlock("distributor.ring", {}, { heartbeatPeriod: "5s" }),
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
    "memory that pushes may hold, bodies that arrive and decoded ones; one tenant gets half of it; 0: an eighth of the memory, 384MB at most",
    "distributor.max-inflight-bytes",
  ),
  otlp_config: field.section("OTLP.", {
    default_resource_attributes_as_index_labels: field.list(
      indexLabelAttributes,
      "resource attributes that become labels",
      "distributor.otlp.default_resource_attributes_as_index_labels",
    ),
  }),
});

/**
 * The limits that the pushes of one tenant are checked against. A change shows in the identity of the object, so
 * `limitsOf` must return the same one until a limit changes.
 */
export type PushLimits = Pick<
  Limits,
  | "ingestion_rate_strategy"
  | "ingestion_rate_mb"
  | "ingestion_burst_size_mb"
  | "max_label_name_length"
  | "max_label_value_length"
  | "max_label_names_per_series"
  | "reject_old_samples"
  | "reject_old_samples_max_age"
  | "creation_grace_period"
  | "max_days_per_push"
  | "max_line_size"
  | "max_line_size_truncate"
  | "max_line_size_truncate_identifier"
  | "increment_duplicate_timestamp"
  | "discover_service_name"
  | "discover_log_levels"
  | "log_level_fields"
  | "log_level_from_json_max_depth"
  | "allow_structured_metadata"
  | "max_structured_metadata_size"
  | "max_structured_metadata_entries_count"
  | "block_ingestion_until"
  | "block_ingestion_status_code"
  | "enforced_labels"
  | "otlp_config"
  | "agent_label_fields"
>;
