import type { KeyNotes, RetiredKey, UnusedKeys } from "@skald/runtime/config";

const onlyOneProcess = "this version runs in one process and makes no calls between services";
const noRing = "this version runs in one process and needs no ring";
const onlyDisk = "this version keeps data on its own disk";

/** Keys that are read and checked but change nothing yet: a feature that comes takes its row away. */
const unused: readonly UnusedKeys[] = [
  { section: "", keys: ["ballast_bytes"], reason: "there is no Go heap to calm" },
  {
    section: "server",
    keys: ["grpc_*"],
    reason: onlyOneProcess,
  },
  {
    section: "server",
    keys: [
      "proxy_protocol_enabled",
      "tls_cipher_suites",
      "tls_min_version",
      "http_tls_config",
      "log_source_ips_*",
      "log_request_headers",
      "log_request_exclude_headers_list",
    ],
  },
  { section: "common.ring", reason: noRing },
  { section: "common.storage.hedging", reason: onlyDisk },
  {
    section: "common.storage",
    keys: ["s3", "gcs", "azure", "alibabacloud", "bos", "swift", "cos", "object_store"],
    reason: onlyDisk,
  },
  {
    section: "common",
    keys: [
      "persist_tokens",
      "instance_interface_names",
      "instance_addr",
      "compactor_address",
      "compactor_grpc_address",
      "scratch_path",
    ],
    reason: onlyOneProcess,
  },
  { section: "distributor.ring", reason: noRing },
  {
    section: "distributor",
    keys: [
      "push_worker_count",
      "rate_store",
      "write_failures_logging",
      "otlp_attribute_logging",
      "default_policy_stream_mappings",
      "ingester_writes_enabled",
    ],
  },
  { section: "ingester.lifecycler", reason: noRing },
  {
    section: "ingester",
    keys: [
      "concurrent_flushes",
      "chunk_block_size",
      "chunk_encoding",
      "sync_period",
      "sync_min_utilization",
      "autoforget_unhealthy",
      "query_store_max_look_back_period",
      "index_shards",
      "max_dropped_streams",
      "owned_streams_check_interval",
      "delegate_stream_limits_enabled",
      "wal.checkpoint_duration",
      "wal.replay_memory_ceiling",
    ],
  },
  { section: "ingester_client", reason: onlyOneProcess },
  { section: "pattern_ingester" },
  {
    section: "querier",
    keys: [
      "tail_max_duration",
      "extra_query_delay",
      "query_ingesters_within",
      "engine",
      "query_store_only",
      "query_ingester_only",
      "query_partition_ingesters",
      "per_request_limits_enabled",
    ],
  },
  { section: "query_range" },
  { section: "frontend.grpc_client_config", reason: onlyOneProcess },
  {
    section: "frontend",
    keys: [
      "log_queries_longer_than",
      "log_query_request_headers",
      "query_stats_enabled",
      "querier_forget_delay",
      "scheduler_*",
      "graceful_shutdown_timeout",
      "instance_*",
      "encoding",
      "downstream_url",
      "tail_proxy_url",
      "tail_tls_config",
      "support_parquet_encoding",
    ],
  },
  { section: "frontend_worker", reason: onlyOneProcess },
  { section: "query_scheduler", reason: onlyOneProcess },
  { section: "index_gateway", reason: onlyOneProcess },
  { section: "compactor" },
  { section: "compactor_grpc_client", reason: onlyOneProcess },
  { section: "ruler" },
  { section: "ruler_storage" },
  { section: "memberlist", reason: noRing },
  { section: "chunk_store_config" },
  {
    section: "storage_config",
    keys: [
      "aws",
      "azure",
      "gcs",
      "alibabacloud",
      "bos",
      "swift",
      "cos",
      "named_stores",
      "hedging",
      "object_prefix",
      "max_parallel_get_chunk",
      "max_chunk_batch_size",
      "object_store.s3",
      "object_store.gcs",
      "object_store.azure",
      "object_store.swift",
      "object_store.alibaba",
      "object_store.bos",
      "object_store.cos",
      "object_store.storage_prefix",
    ],
    reason: onlyDisk,
  },
  {
    section: "storage_config.tsdb_shipper",
    reason: "segments carry their own index, there is nothing to ship",
  },
  {
    section: "limits_config",
    keys: [
      "simulated_push_latency",
      "use_owned_stream_count",
      "discover_generic_fields",
      "policy_*",
      "block_ingestion_policy_until",
      "max_concurrent_tail_requests",
      "max_query_bytes_read",
      "max_querier_bytes_read",
      "max_chunks_per_query",
      "cardinality_limit",
      "split_*",
      "recent_metadata_query_window",
      "min_sharding_lookback",
      "max_query_parallelism",
      "tsdb_*",
      "shard_aggregations",
      "max_queriers_per_tenant",
      "max_query_capacity",
      "max_cache_freshness_per_query",
      "max_metadata_cache_freshness",
      "max_stats_cache_freshness",
      "query_ready_index_num_days",
      "index_gateway_*",
      "blocked_queries",
      "retention_*",
      "deletion_mode",
      "shard_streams",
      "ingestion_partitions_tenant_shard_size",
      "ruler_*",
      "pattern_*",
      "metric_aggregation_enabled",
      "s3_sse_*",
    ],
  },
  { section: "operational_config" },
  { section: "analytics", keys: ["usage_stats_url", "proxy_url"], reason: "nothing is ever sent" },
  { section: "tracing" },
];

const removed = "has no meaning any more";
const tsdbOnly = "only tsdb is supported";
const enterprise = "is a key of an enterprise product";
const experiment = "is an experiment that Skald does not take part in";

function all(paths: readonly string[], reason: string): RetiredKey[] {
  return paths.map((path) => ({ path, reason }));
}

const retiredSections: readonly RetiredKey[] = [
  ...all(
    [
      "bloom_build",
      "bloom_gateway",
      "ingest_limits",
      "ingest_limits_frontend",
      "ingest_limits_frontend_client",
      "kafka_config",
      "query_engine",
      "dataobj",
      "block_builder",
      "lbac",
      "ui",
    ],
    experiment,
  ).map((row) => ({ ...row, switch: "enabled" })),
  { path: "profiling", reason: "profiles of a Go program do not exist here" },
  { path: "internal_server", reason: "not used by this version", switch: "enable" },
  { path: "table_manager", reason: "use compactor.retention_enabled instead" },
  { path: "compactor_client", reason: "use compactor_grpc_client instead" },
  { path: "http_prefix", reason: "use server.http_path_prefix instead" },
  ...all(["license", "admin_client", "cluster_name", "auth", "admin_api", "gateway"], enterprise),
];

const retiredKeys: readonly RetiredKey[] = [
  { path: "ingester.max_transfer_retries", reason: "the write-ahead log took its place" },
  { path: "ingester.chunk_pool_size", reason: removed },
  { path: "ingester.kafka_ingestion", reason: experiment },
  { path: "ingester.tailer", reason: "use ingester.max_dropped_streams instead" },
  { path: "querier.engine.timeout", reason: "use limits_config.query_timeout instead" },
  { path: "querier.query_timeout", reason: "use limits_config.query_timeout instead" },
  {
    path: "query_range.split_queries_by_interval",
    reason: "use limits_config.split_queries_by_interval instead",
  },
  { path: "query_range.forward_headers_list", reason: removed },
  ...all(["**.fifocache", "**.enable_fifocache"], "use embedded_cache instead"),
  ...all(
    ["frontend_worker.parallelism", "frontend_worker.match_max_concurrent"],
    "use querier.max_concurrent instead",
  ),
  ...all(
    [
      "storage_config.boltdb_shipper",
      "storage_config.boltdb",
      "storage_config.bigtable",
      "storage_config.cassandra",
      "storage_config.grpc_store",
      "storage_config.aws.dynamodb",
    ],
    tsdbOnly,
  ),
  ...all(
    ["storage_config.tsdb_shipper.shared_store", "compactor.shared_store"],
    "the object_store of the period is used",
  ),
  ...all(
    [
      "storage_config.index_queries_cache_config",
      "storage_config.index_cache_validity",
      "storage_config.disable_broad_index_queries",
      "chunk_store_config.write_dedupe_cache_config",
      "chunk_store_config.cache_lookups_older_than",
    ],
    removed,
  ),
  { path: "storage_config.bloom_shipper", reason: experiment },
  {
    path: "chunk_store_config.max_look_back_period",
    reason: "use limits_config.max_query_lookback instead",
  },
  ...all(
    ["compactor.deletion_mode", "compactor.allow_deletes", "limits_config.allow_deletes"],
    "use limits_config.deletion_mode instead",
  ),
  {
    path: "compactor.shared_store_key_prefix",
    reason: "use compactor.delete_request_store_key_prefix instead",
  },
  ...all(
    [
      "limits_config.enforce_metric_name",
      "limits_config.unordered_writes",
      "limits_config.ruler_evaluation_delay_duration",
      "limits_config.ruler_enable_wal_replay",
      "limits_config.enable_multi_variant_queries",
    ],
    removed,
  ),
  { path: "limits_config.bloom_*", reason: experiment },
  ...all(
    [
      "limits_config.ruler_remote_write_url",
      "limits_config.ruler_remote_write_timeout",
      "limits_config.ruler_remote_write_headers",
      "limits_config.ruler_remote_write_relabel_configs",
      "limits_config.ruler_remote_write_queue_*",
      "limits_config.ruler_remote_write_sigv4_config",
    ],
    "use limits_config.ruler_remote_write_config instead",
  ),
  { path: "ruler.alertmanager_client_config", reason: "use ruler.alertmanager_client instead" },
  { path: "**.sse_encryption", reason: "use sse.type instead" },
  { path: "common.storage.filesystem.admin_api_directory", reason: removed },
  { path: "server.grpc_server_stats_tracking_enabled", reason: removed },
  { path: "schema_config.configs[].chunks", reason: removed },
  { path: "schema_config.configs[].row_shards", reason: removed },
  { path: "schema_config.configs[].index.tags", reason: removed },
];

const retiredFlags: KeyNotes["retiredFlags"] = {
  "legacy-read-mode": removed,
  "log-config-reverse-order": "the order of the printed configuration does not change",
  "ingester.max-transfer-retries": "the write-ahead log took its place",
  "table-manager.retention-deletes-enabled": "use -compactor.retention-enabled instead",
  "table-manager.retention-period": "use -store.retention instead",
  "server.grpc-server-stats-tracking-enabled": removed,
};

/** What there is to say about keys and flags that do nothing. */
export const keyNotes: KeyNotes = {
  unused,
  retired: [...retiredSections, ...retiredKeys],
  retiredFlags,
};
