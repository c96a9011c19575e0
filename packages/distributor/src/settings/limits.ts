import type { Limits } from "@skald/runtime/config";

/**
 * The limits of one tenant that pushes are held against. A change is noticed by the identity of the object, so `limitsOf`
 * must return the same one until something changed.
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
>;
