import type { Querier } from "@skald/contracts";
import type { QueryStats } from "@skald/model";
import type { QueryTenantLimits } from "./limits/limits.js";
import type { ResultStores } from "./results-cache/result-store.js";

/** The tenants that ask, and their limits: plain data. */
export interface Asker {
  /** Sorted, at least one. */
  readonly tenants: readonly string[];
  /** Those of all tenants together. */
  readonly limits: QueryTenantLimits;
  /** Actors within the tenants, from the outside in; see `QueryShare`. */
  readonly actors?: readonly string[];
  /** What the client says about the query: `a=b,c=d`. */
  readonly queryTags?: string;
}

/** Everything that belongs to one request: who asks, who answers, and where answers are kept. */
export interface QueryContext extends Asker {
  readonly querier: Querier;
  readonly signal: AbortSignal;
  /** Where answers are kept; absent where none are. */
  readonly stores?: ResultStores | undefined;
  /** How long the request waited before it came here; 0 if not given. */
  readonly queueSeconds?: number;
  /** Cut queries over a range by time, so that several queriers answer one; false if not given. */
  readonly splitsByTime?: boolean;
  /** Receives each query that was run. */
  readonly onQuery?: ((facts: QueryFacts) => void) | undefined;
}

/** A query that was run, for those who count: plain data. */
export interface QueryFacts {
  readonly asked: AskedQuery;
  /** The status of HTTP. */
  readonly status: number;
  /** `limited` are log queries without stages: they end with their limit. */
  readonly type: "metric" | "filter" | "limited";
  readonly range: "instant" | "range";
  readonly seconds: number;
  /** Absent where the query failed. */
  readonly stats: QueryStats | undefined;
}

/** What a client asked for: plain data. */
export interface AskedQuery {
  readonly tenants: readonly string[];
  readonly query: string;
  /** See `Asker.queryTags`. */
  readonly tags: string;
  readonly lengthNs: bigint;
  /** 0 for a query at one time. */
  readonly stepNs: bigint;
  readonly limit: number;
}
