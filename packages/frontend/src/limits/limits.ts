/** Limits of a tenant on queries; 0 means no limit. */
export interface QueryTenantLimits {
  readonly maxEntriesPerQuery: number;
  readonly maxSeries: number;
  readonly maxLengthNs: bigint;
  /** Data older than this before now is not looked at. */
  readonly maxLookbackNs: bigint;
  /** Longest `[range]`. */
  readonly maxRangeNs: bigint;
  readonly maxMatchersPerQuery: number;
  /** Bytes of lines that a query may read. */
  readonly maxBytesRead: number;
  readonly timeoutMs: number;
  readonly requiredLabels: readonly string[];
  readonly minLabels: number;
}

/** The limits of a request over several tenants: of each the smallest that is set; label rules of all. */
export function combineLimits(all: readonly QueryTenantLimits[]): QueryTenantLimits {
  const least = (pick: (limits: QueryTenantLimits) => number) => smallest(all.map(pick), 0);
  const leastNs = (pick: (limits: QueryTenantLimits) => bigint) => smallest(all.map(pick), 0n);
  return {
    maxEntriesPerQuery: least((limits) => limits.maxEntriesPerQuery),
    maxSeries: least((limits) => limits.maxSeries),
    maxLengthNs: leastNs((limits) => limits.maxLengthNs),
    maxLookbackNs: leastNs((limits) => limits.maxLookbackNs),
    maxRangeNs: leastNs((limits) => limits.maxRangeNs),
    maxMatchersPerQuery: least((limits) => limits.maxMatchersPerQuery),
    maxBytesRead: least((limits) => limits.maxBytesRead),
    timeoutMs: least((limits) => limits.timeoutMs),
    requiredLabels: [...new Set(all.flatMap((limits) => limits.requiredLabels))],
    minLabels: Math.max(...all.map((limits) => limits.minLabels)),
  };
}

function smallest<T extends number | bigint>(values: readonly T[], none: T): T {
  const set = values.filter((value) => value > none);
  return set.reduce((least, value) => (value < least ? value : least), set[0] ?? none);
}
