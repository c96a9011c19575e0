import type { Limits } from "@skald/runtime/config";
import type { IngesterConfig } from "./config.js";

/** The settings of an ingester. */
export interface IngesterOptions {
  /** Unique among the ingesters that share an object store; part of the id of each segment. */
  readonly instanceId: string;
  /** The directory of `segments` and `quarantine`. */
  readonly dataDir: string;
  /** The section `ingester` of the configuration. */
  readonly config: IngesterConfig;
  readonly bounds: IngesterBounds;
}

/** The directories that an ingester writes to. */
export function writtenDirectories({ dataDir, config }: IngesterOptions): readonly string[] {
  return [...new Set(config.wal.enabled ? [dataDir, config.wal.dir] : [dataDir])];
}

/** Limits without a configuration key. Sizes are in bytes, times in ms. */
export interface IngesterBounds {
  /** Size of heads that wait to be sealed; beyond it pushes wait. */
  readonly maxFrozenBytes: number;
  /** Bytes of pushes that wait for sealing or for the log, beyond which more are refused, and the time that each may wait. */
  readonly maxWaitingBytes: number;
  readonly maxPushWaitMs: number;
  /** Seals at a time, including those that wait for a thread or a directory. */
  readonly sealConcurrency: number;
  /** Time limit of `stop` for sealing and uploading everything. */
  readonly maxStopFlushMs: number;
  readonly maxWalFileBytes: number;
  readonly maxWalQueuedBytes: number;
  /** Size of the log that one head keeps from being cut; beyond it the head is sealed, so that a quiet tenant does not keep the log for ever. */
  readonly maxPinnedWalBytes: number;
  /** Up to this size, the rows of a head are written to the log again instead of being sealed. */
  readonly maxForwardBytes: number;
  /** Upper limit of `wal.replay_memory_ceiling`. */
  readonly maxReplayBytes: number;
  /** Time that a query waits for the replay of the log. */
  readonly maxReplayWaitMs: number;
  /** Free space of the disk with `dataDir` below which pushes are refused; a twentieth of a small disk. */
  readonly minFreeBytes: number;
  /** Size of the local segments that are not uploaded; beyond it the oldest are uploaded. */
  readonly maxLocalBytes: number;
  /** Up to this size, local segments that wait for their upload are merged into one object. */
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

/** The limits of a tenant that an ingester applies. */
export type IngesterLimits = Pick<
  Limits,
  | "max_streams_per_user"
  | "max_global_streams_per_user"
  | "per_stream_rate_limit"
  | "per_stream_rate_limit_burst"
  | "creation_grace_period"
  | "reject_old_samples"
>;

/** Most streams of a tenant: the smaller of the limits that are set; 0 means no limit. */
export function maxStreamsOf(limits: IngesterLimits): number {
  const { max_streams_per_user: own, max_global_streams_per_user: all } = limits;
  return own > 0 && all > 0 ? Math.min(own, all) : Math.max(own, all);
}
