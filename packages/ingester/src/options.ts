/** Settings of an ingester, as the program reads them from its configuration. Sizes in bytes, times in ms. */
export interface IngesterOptions {
  /** Unique among the ingesters that share an object store; part of each segment's id. */
  readonly instanceId: string;
  /** Holds `segments` and `quarantine`. */
  readonly dataDir: string;
  readonly wal: WalSettings;
  /** Bytes of lines at which a head is sealed. */
  readonly headTargetBytes: number;
  /** Memory of all heads at which the largest are sealed early. */
  readonly maxHeadBytes: number;
  /** Memory of heads that wait to be sealed; pushes wait while it is more. */
  readonly maxFrozenBytes: number;
  /** Pushes that wait for that or for the log: bytes of all, beyond which more are refused, and how long each may wait. */
  readonly maxWaitingBytes: number;
  readonly maxPushWaitMs: number;
  /** Seals at a time. */
  readonly sealConcurrency: number;
  /** A head without pushes for this long is sealed, a segment this old is uploaded, a stream is forgotten. */
  readonly chunkIdlePeriodMs: number;
  /** A head this old is sealed. */
  readonly maxChunkAgeMs: number;
  /** How far a row may be behind the newest row of its stream; Infinity: as far as it likes. */
  readonly outOfOrderWindowMs: number;
  /** Pause between looks for what is old. */
  readonly flushCheckPeriodMs: number;
  /** Whether `stop` seals and uploads everything. */
  readonly flushOnShutdown: boolean;
  /** Pauses between tries of a seal or an upload. */
  readonly backoff: { readonly minMs: number; readonly maxMs: number };
  readonly upload: UploadSettings;
}

export interface WalSettings {
  readonly enabled: boolean;
  readonly dir: string;
  readonly fsync: "always" | "interval" | "never";
  readonly fsyncIntervalMs: number;
  readonly maxFileBytes: number;
  readonly maxQueuedBytes: number;
  /** Part of the disk, 0 .. 1; 0: never refuse. */
  readonly diskFullThreshold: number;
  /** Log kept because of one head; beyond it the head is sealed, so that the log of a quiet tenant does not grow for ever. */
  readonly maxPinnedBytes: number;
  /** Memory of heads above which a replay seals as it goes. */
  readonly replayMemoryCeilingBytes: number;
}

export interface UploadSettings {
  /** Age at which a local segment is uploaded. */
  readonly afterMs: number;
  /** Size of all local segments that are not uploaded; the oldest go beyond it. */
  readonly maxLocalBytes: number;
  /** How long a local copy stays once the store lists it: longer than any query runs. */
  readonly retainMs: number;
  readonly concurrency: number;
  /** Time limit of one upload. */
  readonly timeoutMs: number;
}

/** Limits of a tenant that an ingester looks after. */
export interface IngesterLimits {
  /** Streams at a time; 0: no limit. */
  readonly maxStreams: number;
  /** Bytes of lines and metadata per second of one stream. */
  readonly streamRateBytes: number;
  readonly streamBurstBytes: number;
}

const MiB = 1024 * 1024;
const minuteMs = 60_000;

/** What an ingester uses for settings that are not given. */
export const defaultIngesterOptions: Omit<IngesterOptions, "instanceId" | "dataDir"> = {
  wal: {
    enabled: true,
    dir: "wal",
    fsync: "interval",
    fsyncIntervalMs: 100,
    maxFileBytes: 64 * MiB,
    maxQueuedBytes: 64 * MiB,
    diskFullThreshold: 0.9,
    maxPinnedBytes: 1024 * MiB,
    replayMemoryCeilingBytes: 512 * MiB,
  },
  headTargetBytes: 32 * MiB,
  maxHeadBytes: 384 * MiB,
  maxFrozenBytes: 96 * MiB,
  maxWaitingBytes: 128 * MiB,
  maxPushWaitMs: 20_000,
  sealConcurrency: 2,
  chunkIdlePeriodMs: 30 * minuteMs,
  maxChunkAgeMs: 120 * minuteMs,
  outOfOrderWindowMs: 60 * minuteMs,
  flushCheckPeriodMs: 30_000,
  flushOnShutdown: false,
  backoff: { minMs: 1000, maxMs: minuteMs },
  upload: {
    afterMs: 30 * minuteMs,
    maxLocalBytes: 4096 * MiB,
    retainMs: 15 * minuteMs,
    concurrency: 4,
    timeoutMs: 10 * minuteMs,
  },
};
