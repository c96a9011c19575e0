import { nsPerMs } from "@skald/model";
import type { Limits } from "@skald/runtime/config";

/** The limits of a tenant on queries; 0 means no limit. */
export type QueryTenantLimits = Pick<
  Limits,
  | "max_entries_limit_per_query"
  | "max_query_series"
  | "max_query_length"
  | "max_query_lookback"
  | "max_query_range"
  | "max_streams_matchers_per_query"
  | "max_query_bytes_read"
  | "max_query_memory_bytes"
  | "query_timeout"
  | "required_labels"
  | "minimum_labels_number"
  | "blocked_queries"
  | "volume_enabled"
  | "volume_max_series"
  | "split_queries_by_interval"
  | "max_query_parallelism"
  | "retention_period"
  | "retention_stream"
>;

/** The limits of a request over several tenants: of each the smallest that is set; label rules of all. */
export function combineLimits(all: readonly QueryTenantLimits[]): QueryTenantLimits {
  const least = (pick: (limits: QueryTenantLimits) => number): number => {
    const set = all.map(pick).filter((value) => value > 0);
    return set.length === 0 ? 0 : Math.min(...set);
  };
  return {
    max_entries_limit_per_query: least((limits) => limits.max_entries_limit_per_query),
    max_query_series: least((limits) => limits.max_query_series),
    max_query_length: least((limits) => limits.max_query_length),
    max_query_lookback: least((limits) => limits.max_query_lookback),
    max_query_range: least((limits) => limits.max_query_range),
    max_streams_matchers_per_query: least((limits) => limits.max_streams_matchers_per_query),
    max_query_bytes_read: least((limits) => limits.max_query_bytes_read),
    max_query_memory_bytes: least((limits) => limits.max_query_memory_bytes),
    query_timeout: least((limits) => limits.query_timeout),
    required_labels: [...new Set(all.flatMap((limits) => limits.required_labels))],
    volume_enabled: all.every((limits) => limits.volume_enabled),
    volume_max_series: least((limits) => limits.volume_max_series),
    blocked_queries: all.flatMap((limits) => limits.blocked_queries),
    split_queries_by_interval: least((limits) => limits.split_queries_by_interval),
    max_query_parallelism: least((limits) => limits.max_query_parallelism),
    retention_period: least((limits) => limits.retention_period),
    retention_stream: all.flatMap((limits) => limits.retention_stream),
    minimum_labels_number: Math.max(0, ...all.map((limits) => limits.minimum_labels_number)),
  };
}

/** A limit on time in the unit of queries. */
export function nsOfMs(ms: number): bigint {
  return BigInt(Math.round(ms)) * nsPerMs;
}
