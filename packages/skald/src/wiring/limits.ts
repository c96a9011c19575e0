import type { PushLimits } from "@skald/distributor";
import type { QueryTenantLimits } from "@skald/frontend";
import { nsPerMs } from "@skald/model";
import type { Limits } from "@skald/runtime";

/** The limits of a tenant as the distributor reads them; the same object for the same limits. */
export const pushLimitsOf: (limits: Limits) => PushLimits = remember(
  (limits: Limits): PushLimits => ({
    ingestionRateStrategy: limits.ingestion_rate_strategy,
    ingestionRateMb: limits.ingestion_rate_mb,
    ingestionBurstSizeMb: limits.ingestion_burst_size_mb,
    maxLabelNameLength: limits.max_label_name_length,
    maxLabelValueLength: limits.max_label_value_length,
    maxLabelNamesPerSeries: limits.max_label_names_per_series,
    rejectOldSamples: limits.reject_old_samples,
    rejectOldSamplesMaxAgeMs: limits.reject_old_samples_max_age,
    creationGracePeriodMs: limits.creation_grace_period,
    maxLineSize: limits.max_line_size,
    maxLineSizeTruncate: limits.max_line_size_truncate,
    maxLineSizeTruncateIdentifier: limits.max_line_size_truncate_identifier,
    incrementDuplicateTimestamp: limits.increment_duplicate_timestamp,
    discoverServiceName: limits.discover_service_name,
    discoverLogLevels: limits.discover_log_levels,
    logLevelFields: limits.log_level_fields,
    logLevelFromJsonMaxDepth: limits.log_level_from_json_max_depth,
    allowStructuredMetadata: limits.allow_structured_metadata,
    maxStructuredMetadataSize: limits.max_structured_metadata_size,
    maxStructuredMetadataEntriesCount: limits.max_structured_metadata_entries_count,
    blockIngestionUntilMs: limits.block_ingestion_until,
    blockIngestionStatusCode: limits.block_ingestion_status_code,
    enforcedLabels: limits.enforced_labels,
  }),
);

/** The limits of a tenant as the frontend reads them. */
export const queryLimitsOf: (limits: Limits) => QueryTenantLimits = remember(
  (limits: Limits): QueryTenantLimits => ({
    maxEntriesPerQuery: limits.max_entries_limit_per_query,
    maxSeries: limits.max_query_series,
    maxLengthNs: ns(limits.max_query_length),
    maxLookbackNs: ns(limits.max_query_lookback),
    maxRangeNs: ns(limits.max_query_range),
    maxMatchersPerQuery: limits.max_streams_matchers_per_query,
    maxBytesRead: limits.max_query_bytes_read,
    timeoutMs: limits.query_timeout,
    requiredLabels: limits.required_labels,
    minLabels: limits.minimum_labels_number,
  }),
);

function ns(ms: number): bigint {
  return BigInt(Math.round(ms)) * nsPerMs;
}

function remember<Out>(map: (limits: Limits) => Out): (limits: Limits) => Out {
  const known = new WeakMap<Limits, Out>();
  return (limits) => {
    const before = known.get(limits);
    if (before !== undefined) return before;
    const made = map(limits);
    known.set(limits, made);
    return made;
  };
}
