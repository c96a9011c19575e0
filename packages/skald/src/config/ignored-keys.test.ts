import { describe, expect, it } from "@jest/globals";
import { IgnoredKeys, leavesOf } from "@skald/runtime/config";
import { ignoredKeys } from "./ignored-keys.js";
import { configRoot } from "./load-config.js";
import { load, minimal, run, text } from "./testing/load.js";

/** Keys and flags of Loki: at least one for each pattern of the table. */
const names = `
analytics.proxy_url ballast_bytes chunk_store_config.chunk_cache_config_l2.background.writeback_buffer
chunk_store_config.max_look_back_period cluster_name common.compactor_grpc_address common.scratch_path
common.storage.filesystem.admin_api_directory common.storage.s3.dynamodb.url compactor.allow_deletes
compactor.backup_delete_request_store_db_type compactor.retention_backoff_config.max_period compactor.shared_store
compactor.shared_store_key_prefix compactor.upload_parallelism compactor.worker_config.num_sub_workers
distributor.default_policy_stream_mappings.finance distributor.ingest_limits_dry_run_enabled
distributor.ingester_writes_enabled distributor.otlp_attribute_logging.rate
distributor.rate_store.ingester_request_timeout frontend.encoding frontend.graceful_shutdown_timeout
frontend.instance_enable_ipv6 frontend.log_query_request_headers frontend.max_outstanding_per_tenant
frontend.tail_proxy_url frontend_worker.id frontend_worker.match_max_concurrent
frontend_worker.query_frontend_grpc_client.max_recv_msg_size
frontend_worker.query_scheduler_grpc_client.backoff_config.min_period
frontend_worker.query_scheduler_grpc_client.grpc_compression
frontend_worker.query_scheduler_grpc_client.initial_connection_window_size
frontend_worker.query_scheduler_grpc_client.rate_limit gateway.proxy.default.url http_prefix
ingest_limits_frontend.recheck_period ingester.chunk_encoding ingester.chunk_pool_size
ingester.chunk_target_size ingester.flush_op_backoff.max_retries ingester.kafka_ingestion.enabled
ingester.lifecycler.heartbeat_timeout ingester.max_returned_stream_errors ingester.max_transfer_retries
ingester.owned_streams_check_interval ingester.query_store_max_look_back_period ingester.sync_min_utilization
ingester.tailer.max_dropped_streams ingester_client.pool_config.remote_timeout internal_server.enable
limits_config.allow_deletes limits_config.cardinality_limit limits_config.debug_engine_tasks
limits_config.discover_generic_fields.fields.trace limits_config.index_gateway_max_capacity
limits_config.max_metadata_cache_freshness limits_config.max_query_capacity limits_config.pattern_rate_threshold
limits_config.policy_stream_mapping.finance limits_config.query_ready_index_num_days
limits_config.recent_metadata_query_window limits_config.ruler_enable_wal_replay
limits_config.ruler_remote_write_relabel_configs limits_config.s3_sse_kms_key_id
limits_config.shard_streams.time_sharding_ignore_recent limits_config.simulated_push_latency
limits_config.tsdb_max_bytes_per_shard limits_config.unordered_writes limits_config.use_owned_stream_count
memberlist.abort_if_cluster_fast_join_fails_min_nodes operational_config.log_duplicate_stream_info
pattern_ingester.connection_timeout pattern_ingester.lifecycler.observe_period
pattern_ingester.lifecycler.ring.excluded_zones pattern_ingester.pattern_persistence.timeout
pattern_ingester.volume_threshold profiling.block_profile_rate querier.engine.max_count_min_sketch_heap_size
querier.engine.timeout querier.per_request_limits_enabled querier.query_partition_ingesters querier.query_store_only
query_engine.enable query_range.forward_headers_list
query_range.instant_metric_results_cache.cache.background.writeback_goroutines
query_range.instant_metric_results_cache.cache.redis.pool_size query_range.results_cache.cache.fifocache.size
query_range.shard_aggregations query_range.split_queries_by_interval query_scheduler.grpc_client_config.keepalive_time
query_scheduler.querier_forget_delay query_scheduler.scheduler_ring.kvstore.consul.host
query_scheduler.scheduler_ring.num_tokens query_scheduler.scheduler_ring.replication_factor
ruler.alertmanager_client_config.type ruler.enable_alertmanager_v2 ruler.evaluation.query_frontend.tls_cipher_suites
ruler.flush_period ruler.rule_path ruler.storage.gcs.enable_opencensus ruler_storage.gcs.chunk_buffer_size
runtime_config.http_client_cluster_validation.label server.cluster_validation.http.excluded_paths
server.grpc_server_min_time_between_pings server.grpc_server_stats_tracking_enabled server.http_listen_network
server.log_request_at_info_level_enabled server.register_instrumentation
server.report_grpc_codes_in_instrumentation_label_enabled server.trace_request_exclude_headers_list shutdown_delay
storage_config.aws.chunk_delimiter storage_config.aws.signature_version storage_config.aws.sse_encryption
storage_config.azure.environment storage_config.bloom_shipper.working_directory storage_config.cassandra.addresses
storage_config.hedging.at storage_config.index_cache_validity storage_config.max_chunk_batch_size
storage_config.named_stores.gcs.mine.enable_http2 storage_config.object_store.gcs.bucket_name
storage_config.object_store.s3.http.idle_conn_timeout storage_config.object_store.s3.list_objects_version
storage_config.object_store.s3.native_aws_auth_enabled storage_config.object_store.s3.part_size
storage_config.object_store.s3.trace.enabled storage_config.tsdb_shipper.cache_ttl
storage_config.tsdb_shipper.index_gateway_client.time_based_sharding_buckets storage_config.tsdb_shipper.ingestername
storage_config.tsdb_shipper.shared_store storage_config.tsdb_shipper.streaming_index_max_idle_file_handles
storage_config.use_thanos_objstore table_manager.retention_period ui.discovery.join_peers
-azure.environment -common.compactor-grpc-address -common.scratch-path -compactor.delete-request-store.backup-db-type
-compactor.horizontal-scaling-mode -compactor.retention-backoff-config.backoff-max-period
-compactor.upload-parallelism -config.ballast-bytes -distributor.health-check-ingesters
-distributor.ingester-writes-enabled -distributor.otlp-attribute-logging.rate
-distributor.rate-store.ingester-request-timeout -experimental.querier.recent-metadata-query-window -frontend.encoding
-frontend.graceful-shutdown-timeout -frontend.instance-enable-ipv6
-frontend.instant-metric-results-cache.background.write-back-concurrency
-frontend.instant-metric-results-cache.redis.pool-size -frontend.log-query-request-headers
-frontend.max-metadata-cache-freshness -frontend.max-query-capacity -frontend.min-sharding-lookback
-frontend.tail-proxy-url -index-gateway.max-capacity -index-gateway.ring.zone-awareness-enabled
-ingester.chunk-encoding -ingester.chunk-target-size
-ingester.delegate-stream-limits-enabled -ingester.flush-op-backoff-retries -ingester.max-ignored-stream-errors
-ingester.max-transfer-retries -ingester.query-store-max-look-back-period -ingester.sync-min-utilization
-ingester.use-owned-stream-count -legacy-read-mode -limits.pattern-persistence-granularity
-limits.simulated-push-latency -limits.tsdb-sharding-strategy -log-config-reverse-order
-memberlist.abort-if-fast-join-fails -object-store.gcs.bucket-name -object-store.s3.list-objects-version
-object-store.s3.native-aws-auth-enabled -object-store.s3.part-size -object-store.s3.trace.enabled
-operation-config.log-duplicate-metrics -pattern-ingester.connection-timeout
-pattern-ingester.distributor.excluded-zones -pattern-ingester.distributor.zone-awareness-enabled
-pattern-ingester.max-chunk-age -pattern-ingester.observe-period -pattern-ingester.pattern-persistence.loki-address
-querier.engine.max-count-min-sketch-heap-size -querier.frontend-grpc-client.grpc-max-recv-msg-size -querier.id
-querier.max-outstanding-requests-per-tenant -querier.per-request-limits-enabled -querier.query-partition-ingesters
-querier.query-store-only -querier.scheduler-grpc-client.backoff-min-period
-querier.scheduler-grpc-client.grpc-client-rate-limit -querier.scheduler-grpc-client.grpc-compression
-querier.scheduler-grpc-client.initial-connection-window-size -querier.shard-aggregations
-querier.tsdb-max-query-parallelism -query-scheduler.grpc-client-config.initial-connection-window-size
-query-scheduler.querier-forget-delay -query-scheduler.ring.consul.hostname -query-scheduler.ring.num-tokens
-reporting.usage-stats-url -ruler-storage.gcs.bucket-name -ruler.alertmanager-use-v2
-ruler.evaluation.query-frontend.tls-cipher-suites -ruler.flush-period -ruler.rule-path
-ruler.storage.gcs.chunk-buffer-size -s3.chunk-delimiter -s3.signature-version
-server.cluster-validation.http.excluded-paths -server.grpc-server-stats-tracking-enabled
-server.grpc.keepalive.ping-without-stream-allowed -server.log-request-headers -server.proxy-protocol-enabled
-server.register-instrumentation -shard-streams.time-sharding-ignore-recent -shutdown-delay -store.cardinality-limit
-store.chunks-cache-l2.background.write-back-concurrency -store.hedge-requests-at -store.max-chunk-batch-size
-store.query-ready-index-num-days -table-manager.retention-period -tsdb.shipper.cache-ttl
-tsdb.shipper.index-gateway-client.time-based-sharding-buckets -tsdb.shipper.index-reader-mode -use-thanos-objstore
`
  .split(/\s+/)
  .filter(Boolean);
const table = new IgnoredKeys(ignoredKeys);

/** Values of declared keys that take no number. */
const values: Readonly<Record<string, string>> = {
  "ui.enabled": "true",
  "ui.links": "[{field: a, url: 'https://b/{value}'}]",
  "ui.allowed_origins": "https://a",
};

/** A file in which a key is set. */
function fileWith(path: string): string {
  const parts = path.split(".");
  const value = values[path] ?? "1";
  const inner = parts.reduceRight((inside, key) => `{${key}: ${inside}}`, value);
  const top = `${parts[0]}: ${inner.slice(parts[0]!.length + 3, -1)}`;
  const isCommon = parts[0] === "common";
  return isCommon
    ? minimal.replace("/d}", `/d, ${top.slice("common: {".length)}`)
    : `${minimal}\n${top}`;
}

describe("keys and flags without effect", () => {
  it.each(names)("%s is accepted and warned of, once", (name) => {
    const loaded = name.startsWith("-") ? load(minimal, `${name}=1`) : load(fileWith(name));
    const warnings = run(loaded).warnings.filter((warning) => warning.includes("no effect"));
    expect(warnings).toEqual([expect.stringContaining(`; no effect: ${name}`)]);
  });

  it("stand in the table for a name that no line above them has", () => {
    const patterns = ignoredKeys.flatMap(({ why, keys }) => keys.map((key) => ({ why, key })));
    const needless = patterns.filter(({ why, key }) => {
      const alone = new IgnoredKeys([{ why, keys: [key] }]);
      return !names.some((name) => alone.whyOf(name) === why && table.whyOf(name) === why);
    });
    expect(needless.map(({ key }) => key)).toEqual([
      "schema_config.configs[].{chunks.*,row_shards,index.tags.*}",
    ]);
  });

  it("are no declared keys, which win where a pattern names one too", () => {
    const leaves = [...leavesOf(configRoot)];
    const both = leaves.filter(({ path }) => table.whyOf(path) !== undefined);
    expect(both.map(({ path }) => path)).toEqual([
      "common.ring.zone_awareness_enabled",
      "ingester.lifecycler.ring.replication_factor",
      "ingester.lifecycler.ring.zone_awareness_enabled",
      "index_gateway.ring.replication_factor",
      "memberlist.join_members",
      "ui.enabled",
      "ui.title",
      "ui.links",
      "ui.allowed_origins",
    ]);
    for (const { path } of both)
      expect(run(load(fileWith(path))).warnings.join()).not.toContain(path);
    const flags = leaves.flatMap(({ note }) => (note.flag === undefined ? [] : [`-${note.flag}`]));
    const given = flags.filter((flag) => table.whyOf(flag) !== undefined);
    expect(given).toEqual([
      "-common.storage.ring.zone-awareness-enabled",
      "-index-gateway.ring.replication-factor",
      "-memberlist.join",
    ]);
    const { warnings } = run(load(minimal, ...given.map((flag) => `${flag}=1`)));
    expect(warnings.join()).not.toContain("no effect");
  });

  it.each([
    ["server: {log_levl: info}", 'unknown key "log_levl" in server; did you mean "log_level"?'],
    ["limits_config: {retention_perod: 1d}", 'did you mean "retention_period"?'],
    ["storage_config: {aws: {bucketname: b}}", 'did you mean "bucketnames"?'],
    ["frontend: {max_body: 1}", 'unknown key "max_body" in frontend'],
    ["ingester: {wal: {check: 1}}", 'unknown key "check" in ingester.wal'],
  ])("leave a typing error to be found: %s", (yaml, problem) => {
    expect(text(load(`${minimal}\n${yaml}`))).toContain(problem);
  });

  it("leave a typing error in a flag to be found", () => {
    expect(text(load(minimal, "-server.http-listen-prt=1"))).toContain(
      "did you mean -server.http-listen-port?",
    );
  });
});
