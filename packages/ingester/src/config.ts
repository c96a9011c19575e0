import {
  backoffBlock,
  experiment,
  field,
  gone,
  grpcClientBlock,
  lifecyclerBlock,
  oneCopy,
  ownStreams,
} from "@skald/runtime/config";

const logInstead = "the write-ahead log took its place";

const wal = field.section("The write-ahead log.", {
  enabled: field.toggle(
    true,
    "write pushes to the log before they are answered",
    "ingester.wal-enabled",
  ),
  dir: field.text("wal", "its directory; default path_prefix/wal", "ingester.wal-dir"),
  checkpoint_duration: field.duration(
    "5m",
    "time between two checkpoints",
    "ingester.checkpoint-duration",
    { unused: "the log is cut behind sealed data, there are no checkpoints" },
  ),
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
    "what a machine that loses power may lose, with fsync: interval",
    "ingester.wal-fsync-interval",
    { min: 1 },
  ),
});

const chunkEncodings = [
  "none",
  "gzip",
  "lz4-64k",
  "snappy",
  "lz4-256k",
  "lz4-1M",
  "lz4",
  "flate",
  "zstd",
] as const;

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
  chunk_block_size: field.size(
    "256KB",
    "lines that are compressed together",
    "ingester.chunks-block-size",
    { min: 1024, unused: "segments have blocks and a compression of their own" },
  ),
  chunk_target_size: field.size(
    "1536KB",
    "compressed size from which data is uploaded",
    "ingester.chunk-target-size",
    { unused: "use head_target_size" },
  ),
  chunk_encoding: field.choice(
    "gzip",
    chunkEncodings,
    "compression of lines",
    "ingester.chunk-encoding",
    { unused: "segments have blocks and a compression of their own" },
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
  sync_period: field.duration(
    "1h",
    "steps at which replicas cut at the same time",
    "ingester.sync-period",
    { unused: oneCopy },
  ),
  sync_min_utilization: field.float(
    0.1,
    "part of the target size from which such a cut is made",
    "ingester.sync-min-utilization",
    { max: 1, unused: oneCopy },
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
  flush_op_backoff: backoffBlock(
    {
      min: "ingester.flush-op-backoff-min-period",
      max: "ingester.flush-op-backoff-max-period",
      retries: "ingester.flush-op-backoff-retries",
    },
    { min: "10s", max: "1m", retries: 10 },
  ),
  flush_op_timeout: field.duration("10m", "time limit of an upload", "ingester.flush-op-timeout"),
};

/** `ingester`: how data is held until it is in the object store. */
export const ingesterConfig = field.section(
  "Holds new data until it is in the object store.",
  {
    lifecycler: lifecyclerBlock(
      { ring: "ring", member: "ingester.", distributor: "distributor" },
      3,
    ),
    ...flushing,
    ...chunks,
    wal,
    autoforget_unhealthy: field.toggle(
      false,
      "remove dead ingesters from the ring",
      "ingester.autoforget-unhealthy",
      { unused: "one that is away may come back with rows: forget it on the page of the ring" },
    ),
    max_returned_stream_errors: field.integer(
      10,
      "refused entries that the answer to a push lists, per stream; 0: all",
      "ingester.max-ignored-stream-errors",
      { unused: "10 are listed" },
    ),
    query_store_max_look_back_period: field.duration(
      "0s",
      "how far back the object store is asked by the ingester; 0: not at all, -1: without limit",
      "ingester.query-store-max-look-back-period",
      { min: -1, unused: "ingesters do not ask the store, queriers do" },
    ),
    index_shards: field.integer(32, "shards of the index in memory", "ingester.index-shards", {
      min: 1,
      unused: "the index in memory is not split",
    }),
    max_dropped_streams: field.integer(
      10,
      "streams that a slow tail is told to have missed",
      "ingester.tailer.max-dropped-streams",
    ),
    shutdown_marker_path: field.text(
      "",
      "directory of the file that tells of a prepared shutdown; default path_prefix",
      "ingester.shutdown-marker-path",
    ),
    owned_streams_check_interval: field.duration(
      "30s",
      "pause between counts of the streams that the ingester owns",
      "ingester.owned-streams-check-interval",
      { unused: ownStreams },
    ),
    delegate_stream_limits_enabled: field.toggle(
      false,
      "leave limits of streams to the ingest limits service",
      "ingester.delegate-stream-limits-enabled",
      { unused: experiment },
    ),
  },
  {
    ignored: {
      max_transfer_retries: logInstead,
      chunk_pool_size: gone,
      kafka_ingestion: { why: experiment, switch: "enabled" },
      tailer: "use max_dropped_streams instead",
    },
    ignoredFlags: { "ingester.max-transfer-retries": logInstead },
  },
);

/** `ingester_client`: how other services call ingesters. */
export const ingesterClientConfig = field.section("How other services call ingesters.", {
  pool_config: field.section(
    "Connections.",
    {
      client_cleanup_period: field.duration(
        "15s",
        "pause between removals of dead ones",
        "distributor.client-cleanup-period",
      ),
      health_check_ingesters: field.toggle(
        true,
        "check that ingesters are there",
        "distributor.health-check-ingesters",
      ),
      remote_timeout: field.duration("1s", "time limit of a check"),
    },
    { unused: "connections find out by themselves whether somebody is there" },
  ),
  remote_timeout: field.duration("5s", "time limit of a call", "ingester.client.timeout"),
  grpc_client_config: grpcClientBlock("ingester.client", { used: true }),
});

export type IngesterConfig = Readonly<field.Values<typeof ingesterConfig>>;
