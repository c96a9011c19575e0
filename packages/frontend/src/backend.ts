import type { LogResult, Plan, QueryResult } from "@skald/logql";
import type { Matcher, QueryStats } from "@skald/model";

/** Bounds of one query in bytes of lines. */
export interface BackendLimits {
  /** Lines that it may read; 0: no limit. */
  readonly maxBytesRead: number;
  /** Lines that it may hold for its answer. */
  readonly maxResultBytes: number;
}

/** What the frontend asks of a querier, near or far. */
export interface QueryBackend {
  query(
    request: {
      readonly tenants: readonly string[];
      readonly plan: Plan;
      readonly limits: BackendLimits;
    },
    signal: AbortSignal,
  ): Promise<{ readonly result: QueryResult | LogResult; readonly stats: QueryStats }>;
  /** Canonical label texts of the streams of each tenant; both times inclusive, ns since the epoch. */
  streams(
    request: {
      readonly tenants: readonly string[];
      readonly selectors: readonly (readonly Matcher[])[];
      readonly fromNs: bigint;
      readonly toNs: bigint;
    },
    signal: AbortSignal,
  ): Promise<readonly { readonly tenant: string; readonly texts: readonly string[] }[]>;
}
