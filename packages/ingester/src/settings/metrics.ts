import type { Metrics } from "@skald/runtime";

type Counter = ReturnType<Metrics["counter"]>;
type Gauge = ReturnType<Metrics["gauge"]>;
type Histogram = ReturnType<Metrics["histogram"]>;

/** Name, help and labels; the name of a counter continues with `_total`. */
type Meaning = readonly [name: string, help: string, ...labels: string[]];

const counters = {
  streamsCreated: ["streams_created", "Streams created.", "tenant"],
  streamsRemoved: ["streams_removed", "Idle streams removed.", "tenant"],
  chunksCreated: ["chunks_created", "Heads begun."],
  chunksFlushed: ["chunks_flushed", "Heads sealed.", "reason"],
  chunksStored: ["chunks_stored", "Segments uploaded.", "tenant"],
  storedBytes: ["chunk_stored_bytes", "Bytes uploaded.", "tenant"],
  flushFailures: ["chunks_flush_failures", "Failed seals and uploads."],
  corruptSegments: ["corrupt_segments", "Local segments in quarantine."],
  duplicates: ["wal_duplicate_entries", "Duplicates not stored."],
  walRecords: ["wal_records_logged", "Pushes logged."],
  walBytes: ["wal_logged_bytes", "Bytes of pushes logged."],
  forwardedEntries: ["wal_forwarded_entries", "Entries of small heads written to the log again."],
  tailDropped: ["tail_dropped", "Rows that tails left out."],
  walFailures: ["wal_write_failures", "Failed writes and syncs."],
  walDiskFull: ["wal_disk_full_failures", "Pushes refused for a full disk."],
  walCorruptions: ["wal_corruptions", "Damage found by replay.", "type"],
  recoveredEntries: ["wal_recovered_entries", "Entries replayed."],
  recoveredStreams: ["wal_recovered_streams", "Streams replayed."],
  recoveredBytes: ["wal_recovered_bytes", "Bytes of log replayed."],
} satisfies Record<string, Meaning>;

const gauges = {
  memoryStreams: ["memory_streams", "Streams in memory.", "tenant"],
  replayActive: ["wal_replay_active", "1 while the log is replayed."],
  replaySeconds: ["wal_replay_duration_seconds", "Time of the last replay."],
} satisfies Record<string, Meaning>;

/** Gauges that are read with each scrape. */
const readGauges = {
  tails: ["tails", "Tails that are open."],
  chunks: ["memory_chunks", "Heads that are not sealed."],
  flushQueue: ["flush_queue_length", "Heads that wait to be sealed."],
  headBytes: ["head_memory_bytes", "Shared memory of heads."],
  localSegments: ["local_segments", "Segments on the local disk."],
  walBytes: ["wal_disk_bytes", "Size of the write-ahead log."],
  walQueuedBytes: ["wal_queued_bytes", "Bytes that wait to be logged."],
  diskSpareBytes: ["disk_spare_bytes", "Room on the disk before pushes are refused."],
  diskSizeBytes: ["disk_size_bytes", "Size of the disk; 0 before it was checked."],
} satisfies Record<string, Meaning>;

const sizes = [0.25, 0.5, 1, 2, 4, 8, 16].map((n) => n * 1024 * 1024);
const counts = [100, 1e3, 1e4, 5e4, 1e5, 5e5, 1e6];
const parts = [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 1];
const ages = [60, 600, 1800, 3600, 7200, 14400, 36000];

/** Name, help and buckets; without buckets the usual ones of durations. */
const histograms = {
  walWriteSeconds: ["wal_write_duration_seconds", "Time that pushes wait for the log.", undefined],
  walSyncSeconds: ["wal_fsync_duration_seconds", "Time of syncs of the log.", undefined],
  chunkSize: ["chunk_size_bytes", "Sizes of segments.", sizes],
  chunkEntries: ["chunk_entries", "Entries of segments.", counts],
  chunkUtilization: ["chunk_utilization", "Part of the target size.", parts],
  chunkRatio: [
    "chunk_compression_ratio",
    "Line bytes per stored byte.",
    [1, 2, 3, 4, 5, 6, 8, 10, 20],
  ],
  chunkAge: ["chunk_age_seconds", "Age when sealed.", ages],
  chunkBounds: [
    "chunk_bounds_hours",
    "Hours between first and last entry.",
    [0.1, 0.5, 1, 2, 4, 8, 12, 24],
  ],
} satisfies Record<string, readonly [name: string, help: string, buckets: number[] | undefined]>;

/** The metrics of an ingester, under the names that public dashboards and alerts use; a chunk is a head or a segment. */
export type IngesterMetrics = Readonly<
  Record<keyof typeof counters, Counter> &
    Record<keyof typeof gauges, Gauge> &
    Record<keyof typeof histograms, Histogram>
>;

export function createIngesterMetrics(
  metrics: Metrics,
  read: Readonly<Record<keyof typeof readGauges, () => number>>,
): IngesterMetrics {
  for (const [key, [name, help]] of Object.entries(readGauges)) {
    metrics.gaugeOf(`ingester_${name}`, help, read[key as keyof typeof readGauges]);
  }
  return {
    ...mapped(counters, ([name, help, ...labels]: Meaning) =>
      metrics.counter(`ingester_${name}_total`, help, labels),
    ),
    ...mapped(gauges, ([name, help, ...labels]: Meaning) =>
      metrics.gauge(`ingester_${name}`, help, labels),
    ),
    ...mapped(histograms, ([name, help, buckets]) =>
      metrics.histogram(`ingester_${name}`, help, [], buckets),
    ),
  };
}

function mapped<K extends string, V, W>(table: Record<K, V>, make: (value: V) => W): Record<K, W> {
  const made = Object.entries<V>(table).map(([key, value]) => [key, make(value)]);
  return Object.fromEntries(made) as Record<K, W>;
}
