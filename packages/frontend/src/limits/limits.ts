import type { QueryParams } from "@skald/logql";
import { formatPrometheusDuration, limitReached, nsPerMs, SkaldError } from "@skald/model";
import { deadline } from "@skald/runtime";
import type { Limits } from "@skald/runtime/config";

/** The limits of a tenant on queries; 0 means no limit. */
export type QueryTenantLimits = Pick<
  Limits,
  | "max_entries_limit_per_query"
  | "max_query_series"
  | "max_query_bytes"
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

/** The limits of a request over several tenants: the smallest that is set of each limit, and the label rules of all. */
export function combineLimits(all: readonly QueryTenantLimits[]): QueryTenantLimits {
  const least = (pick: (limits: QueryTenantLimits) => number): number => {
    const set = all.map(pick).filter((value) => value > 0);
    return set.length === 0 ? 0 : Math.min(...set);
  };
  return {
    max_entries_limit_per_query: least((limits) => limits.max_entries_limit_per_query),
    max_query_series: least((limits) => limits.max_query_series),
    max_query_bytes: least((limits) => limits.max_query_bytes),
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

/** The earliest timestamp, ns since the epoch. */
const firstNs = -(2n ** 63n);

/** The start of the time that a query may look at, ns since the epoch; without a limit the earliest timestamp. */
export function oldestAllowed({ max_query_lookback }: QueryTenantLimits, nowNs: bigint): bigint {
  return max_query_lookback === 0 ? firstNs : nowNs - nsOfMs(max_query_lookback);
}

/** Retention keeps rows from this time on, ns since the epoch; older rows may go, and no query may look at them. */
export function oldestLasting(
  { retention_period, retention_stream }: QueryTenantLimits,
  { nowNs = 0n, oldestNs = firstNs }: Pick<QueryParams, "nowNs" | "oldestNs">,
): bigint {
  const periods = [retention_period, ...retention_stream.map(({ period }) => period)];
  const shortest = Math.min(...periods.filter((period) => period > 0));
  const keptNs = Number.isFinite(shortest) ? nowNs - nsOfMs(shortest) : firstNs;
  return keptNs > oldestNs ? keptNs : oldestNs;
}

/** A query that begins before the look-back window begins with the window, or ends where it ends. */
export function clampStart({ startNs, endNs }: QueryParams, oldestNs: bigint): bigint {
  if (startNs >= oldestNs) return startNs;
  return endNs < oldestNs ? endNs : oldestNs;
}

/** The error of a query whose whole time is too old to be looked at. */
export function noLongerAvailable({ max_query_lookback }: QueryTenantLimits): Error {
  return limitReached(
    "max_query_lookback",
    `this data is no longer available, it is past now - max_query_lookback (${formatPrometheusDuration(nsOfMs(max_query_lookback))})`,
  );
}

/** Runs work that has to end within `query_timeout` of a tenant; throws deadline_exceeded when it does not. */
export async function withTimeout<T>(
  limits: QueryTenantLimits,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const message =
    "request timed out, decrease the duration of the request or add more label matchers (prefer exact match over regex match) to reduce the amount of data processed";
  const bounded = deadline({ timeoutMs: limits.query_timeout, message, signal });
  try {
    return await work(bounded.signal);
  } catch (error) {
    const reason: unknown = bounded.signal.reason;
    if (bounded.signal.aborted && reason instanceof SkaldError) throw reason;
    throw error;
  } finally {
    bounded.clear();
  }
}
