import type { QueryParams } from "@skald/logql";
import { formatPrometheusDuration, invalidArgument } from "@skald/model";
import { nsOfMs, type QueryTenantLimits } from "./limits.js";

/** The first time that a timestamp can say. */
const firstNs = -(2n ** 63n);

/** Start of the time that may be looked at, ns since the epoch; without a limit all that a timestamp can say. */
export function oldestAllowed({ max_query_lookback }: QueryTenantLimits, nowNs: bigint): bigint {
  return max_query_lookback === 0 ? firstNs : nowNs - nsOfMs(max_query_lookback);
}

/** Rows from this time on are there for good, ns since the epoch: retention takes older ones, and no query may look at them. */
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

/** What a query is told of which nothing may be looked at. */
export function noLongerAvailable({ max_query_lookback }: QueryTenantLimits): Error {
  return invalidArgument(
    `this data is no longer available, it is past now - max_query_lookback (${formatPrometheusDuration(nsOfMs(max_query_lookback))})`,
  );
}
