import type { Metrics } from "@skald/runtime";

const MiB = 1024 * 1024;

/** What an ingester counts, under the names that public dashboards and alerts know; a chunk is a head or a segment. */
export interface IngesterMetrics {
  readonly memoryStreams: ReturnType<Metrics["gauge"]>;
  readonly streamsCreated: Count;
  readonly streamsRemoved: Count;
  readonly chunksCreated: Count;
  readonly chunksFlushed: Count;
  readonly chunksStored: Count;
  readonly storedBytes: Count;
  readonly flushFailures: Count;
  readonly corruptSegments: Count;
  readonly duplicates: Count;
  readonly walRecords: Count;
  readonly walBytes: Count;
  readonly forwardedEntries: Count;
  readonly walFailures: Count;
  readonly walWriteSeconds: Distribution;
  readonly walSyncSeconds: Distribution;
  readonly tailDropped: Count;
  readonly walDiskFull: Count;
  readonly walCorruptions: Count;
  readonly recoveredEntries: Count;
  readonly recoveredStreams: Count;
  readonly recoveredBytes: Count;
  readonly replayActive: ReturnType<Metrics["gauge"]>;
  readonly replaySeconds: ReturnType<Metrics["gauge"]>;
  readonly chunkSize: Distribution;
  readonly chunkEntries: Distribution;
  readonly chunkUtilization: Distribution;
  readonly chunkRatio: Distribution;
  readonly chunkAge: Distribution;
  readonly chunkBounds: Distribution;
}

type Count = ReturnType<Metrics["counter"]>;
type Distribution = ReturnType<Metrics["histogram"]>;

/** Numbers that are read when the metrics are. */
export interface IngesterGauges {
  readonly chunks: () => number;
  readonly tails: () => number;
  readonly flushQueue: () => number;
  readonly headBytes: () => number;
  readonly localSegments: () => number;
  readonly walBytes: () => number;
  readonly walQueuedBytes: () => number;
}

export function createIngesterMetrics(metrics: Metrics, gauges: IngesterGauges): IngesterMetrics {
  const read = (name: string, help: string, value: () => number) =>
    metrics.gaugeOf(`ingester_${name}`, help, value);
  read("tails", "Tails that are open.", gauges.tails);
  read("memory_chunks", "Heads that are not sealed.", gauges.chunks);
  read("flush_queue_length", "Heads that wait to be sealed.", gauges.flushQueue);
  read("head_memory_bytes", "Shared memory of heads.", gauges.headBytes);
  read("local_segments", "Segments on the local disk.", gauges.localSegments);
  read("wal_disk_bytes", "Size of the write-ahead log.", gauges.walBytes);
  read("wal_queued_bytes", "Bytes that wait to be logged.", gauges.walQueuedBytes);
  return {
    memoryStreams: metrics.gauge("ingester_memory_streams", "Streams in memory.", ["tenant"]),
    streamsCreated: counter(metrics, "streams_created_total", "Streams created.", ["tenant"]),
    streamsRemoved: counter(metrics, "streams_removed_total", "Idle streams removed.", ["tenant"]),
    chunksCreated: counter(metrics, "chunks_created_total", "Heads begun."),
    chunksFlushed: counter(metrics, "chunks_flushed_total", "Heads sealed.", ["reason"]),
    chunksStored: counter(metrics, "chunks_stored_total", "Segments uploaded.", ["tenant"]),
    storedBytes: counter(metrics, "chunk_stored_bytes_total", "Bytes uploaded.", ["tenant"]),
    flushFailures: counter(metrics, "chunks_flush_failures_total", "Failed seals and uploads."),
    corruptSegments: counter(metrics, "corrupt_segments_total", "Local segments in quarantine."),
    duplicates: counter(metrics, "wal_duplicate_entries_total", "Duplicates not stored."),
    walRecords: counter(metrics, "wal_records_logged_total", "Pushes logged."),
    walBytes: counter(metrics, "wal_logged_bytes_total", "Bytes of pushes logged."),
    forwardedEntries: counter(
      metrics,
      "wal_forwarded_entries_total",
      "Entries of small heads written to the log again.",
    ),
    tailDropped: counter(metrics, "tail_dropped_total", "Rows that tails left out."),
    walFailures: counter(metrics, "wal_write_failures_total", "Failed writes and syncs."),
    walWriteSeconds: metrics.histogram(
      "ingester_wal_write_duration_seconds",
      "Time that pushes wait for the log.",
    ),
    walSyncSeconds: metrics.histogram(
      "ingester_wal_fsync_duration_seconds",
      "Time of syncs of the log.",
    ),
    walDiskFull: counter(
      metrics,
      "wal_disk_full_failures_total",
      "Pushes refused for a full disk.",
    ),
    walCorruptions: counter(metrics, "wal_corruptions_total", "Damage found by replay.", ["type"]),
    recoveredEntries: counter(metrics, "wal_recovered_entries_total", "Entries replayed."),
    recoveredStreams: counter(metrics, "wal_recovered_streams_total", "Streams replayed."),
    recoveredBytes: counter(metrics, "wal_recovered_bytes_total", "Bytes of log replayed."),
    replayActive: metrics.gauge("ingester_wal_replay_active", "1 while the log is replayed."),
    replaySeconds: metrics.gauge(
      "ingester_wal_replay_duration_seconds",
      "Time of the last replay.",
    ),
    ...chunkHistograms(metrics),
  };
}

function chunkHistograms(metrics: Metrics) {
  const histogram = (name: string, help: string, buckets: readonly number[]) =>
    metrics.histogram(`ingester_chunk_${name}`, help, [], buckets);
  return {
    chunkSize: histogram(
      "size_bytes",
      "Sizes of segments.",
      [0.25, 0.5, 1, 2, 4, 8, 16].map((n) => n * MiB),
    ),
    chunkEntries: histogram("entries", "Entries of segments.", [100, 1e3, 1e4, 5e4, 1e5, 5e5, 1e6]),
    chunkUtilization: histogram(
      "utilization",
      "Part of the target size.",
      [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 1],
    ),
    chunkRatio: histogram(
      "compression_ratio",
      "Line bytes per stored byte.",
      [1, 2, 3, 4, 5, 6, 8, 10, 20],
    ),
    chunkAge: histogram(
      "age_seconds",
      "Age when sealed.",
      [60, 600, 1800, 3600, 7200, 14400, 36000],
    ),
    chunkBounds: histogram(
      "bounds_hours",
      "Hours between first and last entry.",
      [0.1, 0.5, 1, 2, 4, 8, 12, 24],
    ),
  };
}

function counter(
  metrics: Metrics,
  name: string,
  help: string,
  labels: readonly string[] = [],
): Count {
  return metrics.counter(`ingester_${name}`, help, labels);
}
