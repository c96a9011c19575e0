/** Why entries are refused: the `reason` label of the discarded metrics. */
export type DiscardReason =
  | "missing_labels"
  | "invalid_labels"
  | "max_label_names_per_series"
  | "label_name_too_long"
  | "label_value_too_long"
  | "duplicate_label_names"
  | "missing_enforced_labels"
  | "greater_than_max_sample_age"
  | "too_far_in_future"
  | "too_many_days"
  | "line_too_long"
  | "disallowed_structured_metadata"
  | "structured_metadata_too_large"
  | "structured_metadata_too_many"
  | "blocked_ingestion"
  | "rate_limited"
  | "request_body_too_large";
