import type { Limits } from "@skald/runtime/config";

/** The limits of a tenant that an ingester looks after. */
export type IngesterLimits = Pick<
  Limits,
  | "max_streams_per_user"
  | "max_global_streams_per_user"
  | "per_stream_rate_limit"
  | "per_stream_rate_limit_burst"
  | "creation_grace_period"
>;

/** Streams of a tenant at a time: the smaller limit of those that are set; 0: no limit. */
export function maxStreamsOf(limits: IngesterLimits): number {
  const { max_streams_per_user: own, max_global_streams_per_user: all } = limits;
  return own > 0 && all > 0 ? Math.min(own, all) : Math.max(own, all);
}
