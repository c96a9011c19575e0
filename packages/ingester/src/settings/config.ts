import { field, grpcClientBlock, lifecyclerBlock } from "@skald/runtime/config";

const wal = field.section("The write-ahead log.", {
  enabled: field.toggle(
    true,
    "write pushes to the log before they are answered",
    "ingester.wal-enabled",
  ),
  dir: field.text("wal", "its directory; default path_prefix/wal", "ingester.wal-dir"),
  flush_on_shutdown: field.toggle(
    false,
    "upload everything at the end",
    "ingester.flush-on-shutdown",
  ),
  replay_memory_ceiling: field.size(
    "4GB",
    "memory above which a replay seals as it goes; max_head_memory and half the memory of the process at most",
    "ingester.wal-replay-memory-ceiling",
  ),
  disk_full_threshold: field.float(
    0.9,
    "part of the disk above which pushes are refused; always when less than 128 MiB or a twentieth is left",
    "ingester.wal-disk-full-threshold",
    { max: 1 },
  ),
  fsync: field.choice(
    "interval",
    ["always", "interval", "never"],
    "when a write is forced to the disk: before the push is answered, every fsync_interval, or when the system likes",
    "ingester.wal-fsync",
  ),
  fsync_interval: field.duration(
    "100ms",
    "what a machine that loses power may lose beside the time of one sync, with fsync: interval",
    "ingester.wal-fsync-interval",
    { min: 1 },
  ),
});

const chunks = {
  chunk_retain_period: field.duration(
    "15m",
    "how long data stays on the local disk after its upload, for queries to read it there",
    "ingester.chunks-retain-period",
  ),
  chunk_idle_period: field.duration(
    "30m",
    "time without a push after which data is uploaded",
    "ingester.chunks-idle-period",
  ),
  max_chunk_age: field.duration(
    "2h",
    "age at which data is uploaded; half of it is how far an entry may lie behind its stream",
    "ingester.max-chunk-age",
  ),
  head_target_size: field.size(
    "32MB",
    "lines of a tenant that are held in memory before they are sealed to the local disk",
    "ingester.head-target-size",
    { min: 1024 },
  ),
  max_head_memory: field.size(
    "384MB",
    "memory of what is not sealed yet, of all tenants; the largest are sealed beyond it",
    "ingester.max-head-memory",
    { min: 1024 * 1024 },
  ),
};

const flushing = {
  concurrent_flushes: field.integer(32, "uploads at a time", "ingester.concurrent-flushes", {
    min: 1,
  }),
  flush_check_period: field.duration(
    "30s",
    "pause between looks for data to upload",
    "ingester.flush-check-period",
    { min: 1 },
  ),
  flush_op_backoff: field.section("How an upload is tried again, until it succeeds.", {
    min_period: field.duration("10s", "first pause", "ingester.flush-op-backoff-min-period"),
    max_period: field.duration("1m", "longest pause", "ingester.flush-op-backoff-max-period"),
  }),
  flush_op_timeout: field.duration("10m", "time limit of an upload", "ingester.flush-op-timeout"),
};

/** `ingester`: how data is held until it is in the object store. */
export const ingesterConfig = field.section("Holds new data until it is in the object store.", {
  lifecycler: lifecyclerBlock(
    { ring: "ring", member: "ingester." },
    {
      replication_factor: field.integer(
        3,
        "copies of each stream",
        "distributor.replication-factor",
        { min: 1 },
      ),
      zone_awareness_enabled: field.toggle(
        false,
        "place copies in different zones",
        "distributor.zone-awareness-enabled",
      ),
    },
  ),
  ...flushing,
  ...chunks,
  wal,
  max_dropped_streams: field.integer(
    10,
    "streams that a slow tail is told to have missed",
    "ingester.tailer.max-dropped-streams",
  ),
  autoforget_unhealthy: field.toggle(
    false,
    "forget an ingester whose heartbeats are overdue, once all its rows are in the store",
    "ingester.autoforget-unhealthy",
  ),
  shutdown_marker_path: field.text(
    "",
    "directory of the file that tells of a prepared shutdown; default path_prefix",
    "ingester.shutdown-marker-path",
  ),
});

/** `ingester_client`: how other services call ingesters. */
export const ingesterClientConfig = field.section("How other services call ingesters.", {
  remote_timeout: field.duration("5s", "time limit of a call", "ingester.client.timeout"),
  grpc_client_config: grpcClientBlock("ingester.client"),
});

export type IngesterConfig = Readonly<field.Values<typeof ingesterConfig>>;
