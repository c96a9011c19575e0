import type { Limits } from "@skald/runtime/config";
import type { IngesterConfig } from "./config.js";

/** What an ingester is told by the program that holds it. */
export interface IngesterOptions {
  /** Unique among the ingesters that share an object store; part of each segment's id. */
  readonly instanceId: string;
  /** Holds `segments` and `quarantine`. */
  readonly dataDir: string;
  /** The section `ingester` of the configuration. */
  readonly config: IngesterConfig;
  readonly bounds: IngesterBounds;
}

/** The directories that an ingester writes to. */
export function writtenDirectories({ dataDir, config }: IngesterOptions): readonly string[] {
  return [...new Set(config.wal.enabled ? [dataDir, config.wal.dir] : [dataDir])];
}

/** Bounds that nobody configures. Sizes in bytes, times in ms. */
export interface IngesterBounds {
  /** Memory of heads that wait to be sealed; pushes wait while it is more. */
  readonly maxFrozenBytes: number;
  /** Pushes that wait for that or for the log: bytes of all, beyond which more are refused, and how long each may wait. */
  readonly maxWaitingBytes: number;
  readonly maxPushWaitMs: number;
  /** Seals at a time, those included that wait for a thread or a directory. */
  readonly sealConcurrency: number;
  /** Time that `stop` takes to seal and upload everything. */
  readonly maxStopFlushMs: number;
  readonly maxWalFileBytes: number;
  readonly maxWalQueuedBytes: number;
  /** Log kept because of one head; beyond it the head is sealed, so that the log of a quiet tenant does not grow for ever. */
  readonly maxPinnedWalBytes: number;
  /** Memory of a head up to which its rows are rather written to the log again than sealed. */
  readonly maxForwardBytes: number;
  /** What of `wal.replay_memory_ceiling` holds at most. */
  readonly maxReplayBytes: number;
  /** Time that a query waits for the log to be replayed. */
  readonly maxReplayWaitMs: number;
  /** Free space of the disk with `dataDir` below which pushes are refused; of a small disk a twentieth. */
  readonly minFreeBytes: number;
  /** Size of all local segments that are not uploaded; the oldest go beyond it. */
  readonly maxLocalBytes: number;
  /** Size of a local segment up to which it is merged with others that wait with it, so that they are one object. */
  readonly maxMergeBytes: number;
}

const MiB = 1024 * 1024;

/** The bounds of an ingester in a process with memory for them. */
export const defaultBounds: IngesterBounds = {
  maxFrozenBytes: 96 * MiB,
  maxWaitingBytes: 128 * MiB,
  maxPushWaitMs: 20_000,
  sealConcurrency: 32,
  maxStopFlushMs: 5 * 60_000,
  maxWalFileBytes: 64 * MiB,
  maxWalQueuedBytes: 64 * MiB,
  maxPinnedWalBytes: 1024 * MiB,
  maxForwardBytes: MiB,
  maxReplayBytes: Number.POSITIVE_INFINITY,
  maxReplayWaitMs: 20_000,
  minFreeBytes: 128 * MiB,
  maxLocalBytes: 4096 * MiB,
  maxMergeBytes: 4 * MiB,
};

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
