import type { IgnoredRow } from "@skald/runtime/config";

/** Without periods of a schema this stops the start, because the data would not be where its user expects it. */
export const notBuilt = "only filesystem and s3 are built into this version";

/**
 * Each line gives a reason, the indented lines below it name keys by patterns; a flag begins with a dash. A key that two
 * reasons name has the first. A declared key wins over the table. Patterns are narrow in sections where other keys work, so
 * that a typing error is still found there.
 */
const table = `
use server.http_path_prefix
  http_prefix
use compactor.retention_enabled and limits_config.retention_period
  table_manager.* -table-manager.retention-{deletes-enabled,period}
use limits_config.query_timeout
  querier.{query_timeout,engine.timeout}
use limits_config.split_queries_by_interval
  query_range.split_queries_by_interval
use limits_config.max_query_lookback
  chunk_store_config.max_look_back_period
use limits_config.max_query_bytes_read; there are no chunks and no index entries to count
  limits_config.{max_chunks_per_query,cardinality_limit} -store.{query-chunk-limit,cardinality-limit}
use limits_config.deletion_mode
  compactor.{deletion_mode,allow_deletes} limits_config.allow_deletes
use limits_config.ruler_remote_write_config
  limits_config.ruler_remote_write_{url,timeout,headers,relabel_configs,queue_*,sigv4_config}
use querier.max_concurrent
  frontend_worker.{parallelism,match_max_concurrent}
use query_scheduler.max_outstanding_requests_per_tenant
  frontend.max_outstanding_per_tenant -querier.max-outstanding-requests-per-tenant
use server.graceful_shutdown_timeout
  frontend.graceful_shutdown_timeout -frontend.graceful-shutdown-timeout
use ingester.head_target_size
  ingester.chunk_target_size -ingester.chunk-target-size
use ingester.max_dropped_streams
  ingester.tailer.*
use ring.heartbeat_timeout of the lifecycler
  *.lifecycler.heartbeat_timeout
use grpc_client_config.connect_timeout of pattern_ingester.client_config
  pattern_ingester.connection_timeout -pattern-ingester.connection-timeout
use embedded_cache
  query_range.*.cache.{fifocache.*,enable_fifocache}
use ruler.alertmanager_client
  ruler.alertmanager_client_config.*
use sse.type
  {common.storage.s3,storage_config.aws}.sse_encryption
use storage_config.aws.http_config
  *.object_store.s3.http.*
use compactor.delete_request_store_key_prefix
  compactor.shared_store_key_prefix
the object_store of the last period of schema_config is used
  compactor.shared_store storage_config.tsdb_shipper.shared_store

Skald does not take part in this experiment
  {bloom_build,bloom_gateway,kafka_config,query_engine,dataobj,block_builder}.*
  {ingest_limits,ingest_limits_frontend,ingest_limits_frontend_client}.* storage_config.bloom_shipper.*
  distributor.{kafka_writes_enabled,ingest_limits_enabled,ingest_limits_dry_run_enabled,dataobj_tee.*}
  ingester.{kafka_ingestion.*,delegate_stream_limits_enabled} -ingester.delegate-stream-limits-enabled
  limits_config.{bloom_*,dataobj_*,debug_engine_*,engine_results_cache_time_bucket_interval}
the user interface of Skald needs no such key
  ui.*
this is a key of an enterprise product
  {license,admin_client,admin_api,gateway}.* cluster_name
the key has no meaning any more
  common.storage.filesystem.admin_api_directory ingester.chunk_pool_size query_range.forward_headers_list
  limits_config.{enforce_metric_name,unordered_writes,enable_multi_variant_queries}
  limits_config.ruler_{evaluation_delay_duration,enable_wal_replay}
  schema_config.configs[].{chunks.*,row_shards,index.tags.*}
  storage_config.{index_queries_cache_config.*,index_cache_validity,disable_broad_index_queries}
  -legacy-read-mode -log-config-reverse-order -server.grpc-server-stats-tracking-enabled
only tsdb is supported
  storage_config.{boltdb_shipper,boltdb,bigtable,cassandra,grpc_store,aws.dynamodb}.* common.storage.s3.dynamodb.*
pings are always answered
  -server.grpc.keepalive.{min-time-between-pings,ping-without-stream-allowed}
  server.grpc_server_{min_time_between_pings,ping_without_stream_allowed}
this is about a server in Go; use server.profiles_enabled for profiles
  ballast_bytes -config.ballast-bytes profiling.*
  server.grpc_server_{stats_tracking_enabled,recv_buffer_pools_enabled,num_*}
  server.{grpc_collect_max_streams_by_conn,report_grpc_codes_in_instrumentation_label_enabled}
Skald sends no usage reports
  analytics.* -reporting.{enabled,usage-stats-url,proxy-url}

a process that is asked to end is not ready from then on
  shutdown_delay -shutdown-delay
everything, and always /metrics, is served on one port
  internal_server.* server.register_instrumentation -server.register-instrumentation
Skald listens on IPv4 and IPv6, without the PROXY protocol
  server.{http_listen_network,grpc_listen_network,proxy_protocol_enabled} -server.proxy-protocol-enabled
requests, pushes and their attributes are not logged
  server.{log_source_ips_*,log_request_*,http_log_closed_connections_without_response_enabled}
  -server.{log-source-ips-*,log-request-*} operational_config.* -operation-config.*
  frontend.log_query_request_headers -frontend.log-query-request-headers
  distributor.{write_failures_logging,otlp_attribute_logging}.*
  -distributor.{write-failures-logging,otlp-attribute-logging}.*
spans hold no headers, and continue the trace of the caller
  server.{trace_request_headers,trace_request_exclude_headers_list,create_new_traces}
clusters are not told apart over HTTP
  server.cluster_validation.http.{soft_validation,excluded_*}
  -server.cluster-validation.http.{soft-validation,excluded-*}
an address of overrides has 10 seconds to answer, over a connection of its own
  runtime_config.http_client_*

rings of several processes are kept in Redis
  *.kvstore.{consul,etcd,multi}.* -*ring.{consul,etcd,multi}.* memberlist.* -memberlist.*
instances in this ring need no tokens
  {distributor.ring,query_scheduler.scheduler_ring,index_gateway.ring}.{tokens_file_path,num_tokens}
  -{distributor,query-scheduler,index-gateway}.ring.{tokens-file-path,num-tokens}
only streams have copies, as common.replication_factor and common.ring.zone_awareness_enabled say
  *ring.{replication_factor,zone_awareness_enabled} -*.ring.{replication-factor,zone-awareness-enabled}
  -pattern-ingester.distributor.{replication-factor,zone-awareness-enabled}
zones cannot be excluded; one without instances gets nothing
  *.lifecycler.ring.excluded_zones -{,pattern-ingester.}distributor.excluded-zones
an instance works as soon as it can, and leaves at once
  *.lifecycler.{observe_period,join_after,min_ready_duration,final_sleep,readiness_check_ring_health}
  -{,pattern-}ingester.{observe-period,join-after,min-ready-duration,final-sleep,readiness-check-ring-health}
Skald makes no such calls
  {compactor_client,compactor_grpc_client,query_scheduler.grpc_client_config,frontend.tail_tls_config}.*
  frontend_worker.{grpc_client_config,query_frontend_grpc_client}.* -querier.{frontend-client,frontend-grpc-client}.*
  -{compactor.grpc-client,query-scheduler.grpc-client-config,frontend.tail-tls-config}.*
Skald does not compress calls between services
  *.grpc_compression -*.grpc-compression
Skald does not rate-limit calls between services
  *.{rate_limit,rate_limit_burst,backoff_on_ratelimits}
  -*.{grpc-client-rate-limit,grpc-client-rate-limit-burst,backoff-on-ratelimits}
the service that needs an answer repeats its call
  {*.grpc_client_config,*_grpc_client,ruler.ruler_client}.backoff_config.*
  -*client*.{backoff-min-period,backoff-max-period,backoff-retries}
the window of a connection is four times that of a stream
  *.initial_connection_window_size -*.initial-connection-window-size
connections find out by themselves whether the other side is there
  {ingester_client,pattern_ingester.client_config}.pool_config.*
  -distributor.{client-cleanup-period,health-check-ingesters}
frontends and queriers meet at query schedulers, which forget a querier when its connection ends
  frontend.{querier_forget_delay,instance_interface_names,instance_enable_ipv6,instance_addr}
  -frontend.{instance-interface-names,instance-enable-ipv6,instance-addr} frontend_worker.{frontend_address,id}
  -querier.{frontend-address,id} query_scheduler.querier_forget_delay -query-{frontend,scheduler}.querier-forget-delay
services answer each other in protobuf, over one connection
  frontend.{encoding,scheduler_worker_concurrency} -frontend.{encoding,scheduler-worker-concurrency}

pushes go to the ingesters as they come
  distributor.{push_worker_count,ingester_writes_enabled,circuit_breaker.*} limits_config.simulated_push_latency
  -distributor.{push-worker-count,ingester-writes-enabled} -limits.simulated-push-latency
busy streams are not split
  distributor.rate_store.* -distributor.rate-store.* limits_config.shard_streams.* -shard-streams.*
streams have no policies
  distributor.default_policy_stream_mappings.*
  limits_config.{policy_enforced_labels,policy_stream_mapping,block_ingestion_policy_until}.*
the level is the only field that is looked for in a line
  limits_config.discover_generic_fields.*
streams are placed by tokens, and an ingester counts all that it holds
  querier.query_partition_ingesters -querier.query-partition-ingesters limits_config.use_owned_stream_count
  ingester.owned_streams_check_interval -ingester.{owned-streams-check-interval,use-owned-stream-count}
segments have blocks, a compression and an index of their own
  ingester.{chunk_block_size,chunk_encoding,index_shards} -ingester.{chunks-block-size,chunk-encoding,index-shards}
each replica seals its data by itself
  ingester.{sync_period,sync_min_utilization} -ingester.{sync-period,sync-min-utilization}
the write-ahead log is cut behind sealed data; there are no checkpoints and no transfers
  ingester.{wal.checkpoint_duration,max_transfer_retries} -ingester.{checkpoint-duration,max-transfer-retries}
uploads are repeated until they succeed
  ingester.flush_op_backoff.max_retries -ingester.flush-op-backoff-retries
an answer lists 10 refused entries
  ingester.max_returned_stream_errors -ingester.max-ignored-stream-errors
volumes and patterns are not written back as streams
  {pattern_ingester,limits_config}.{metric_aggregation,pattern_persistence}* limits_config.pattern_rate_threshold
  -pattern-ingester.{metric-aggregation,pattern-persistence}.*
  -limits.{aggregation-enabled,pattern-persistence-enabled,pattern-persistence-granularity,pattern-rate-threshold}
one thread samples and saves all patterns, and keeps them until retain_for
  pattern_ingester.{concurrent_flushes,max_chunk_age,volume_threshold,tee_config.*}
  -pattern-ingester.{concurrent-flushes,max-chunk-age,volume-threshold}

requests are not passed on to another server
  frontend.{downstream_url,tail_proxy_url} -frontend.{downstream-url,tail-proxy-url}
queriers ask all ingesters and the object store, at once
  querier.{extra_query_delay,query_store_only,query_ingester_only} ingester.query_store_max_look_back_period
  -querier.{extra-query-delay,query-store-only,query-ingester-only} -ingester.query-store-max-look-back-period
instant log queries are not answered, and approx_topk is exact
  querier.engine.* -querier.engine.*
the header X-Loki-Query-Limits is not looked at
  querier.per_request_limits_enabled -querier.per-request-limits-enabled
only queries over a range are split, and only by time
  query_range.{parallelise_shardable_queries,shard_aggregations,instant_metric_query_split_align}
  -querier.{parallelise-shardable-queries,shard-aggregations,instant-metric-query-split-align}
  limits_config.{split_*_queries_by_interval,recent_metadata_query_window,max_querier_bytes_read,shard_aggregations}
  limits_config.{min_sharding_lookback,tsdb_*} -querier.{split-*-queries-by-interval,tsdb-*}
  -experimental.querier.{split-recent-metadata-queries-by-interval,recent-metadata-query-window}
  -frontend.{max-querier-bytes-read,min-sharding-lookback} -limits.tsdb-sharding-strategy
tenants take turns at every querier
  limits_config.{max_queriers_per_tenant,max_query_capacity} -frontend.{max-queriers-per-tenant,max-query-capacity}
each tenant has index_gateway.ring.replication_factor index gateways
  limits_config.index_gateway_{shard_size,max_capacity} -index-gateway.{shard-size,max-capacity}
cached results are compared with what was written since, and are never older than the data
  limits_config.max_{cache_freshness_per_query,metadata_cache_freshness,stats_cache_freshness}
  -frontend.max-{cache-freshness,metadata-cache-freshness,stats-cache-freshness}
results are cached in memory or in Redis, over one connection, without memcached and without a queue of writes
  query_range.*.cache.{background,memcached,memcached_client}.* -frontend*.{background,memcached}.*
  query_range.*.cache.redis.{pool_size,idle_timeout,max_connection_age,route_randomly}
  -frontend*.redis.{pool-size,idle-timeout,max-connection-age,route-randomly}

${notBuilt}
  {common.storage,storage_config}.{gcs,azure,alibabacloud,bos,swift,cos}.*
  {common.storage,storage_config}.object_store.{gcs,azure,alibaba,bos,swift,cos}.*
  -{,common.storage.}{gcs,azure}.* -{,common.storage.}object-store.{gcs,azure,oss,bos}.*
there is one object store, without a name
  {storage_config,storage_config.object_store,common.storage.object_store}.named_stores.*
rules are kept in the object store of the data, or in a directory
  ruler.storage.{s3,gcs,azure,alibabacloud,bos,swift,cos}.* -ruler.storage.{s3,gcs,azure}.*
  ruler_storage.{s3.*,gcs.*,azure.*,alibaba.*,bos.*,swift.*,cos.*,storage_prefix}
  -ruler-storage.{s3.*,gcs.*,azure.*,oss.*,bos.*,storage-prefix}
either form of a store is read, the one that is filled
  storage_config.use_thanos_objstore -use-thanos-objstore
names of objects have no colons
  {common.storage.s3,storage_config.aws}.chunk_delimiter -{,common.storage.}s3.chunk-delimiter
a request is signed by version 4 with a SHA-256 of its body, and a list is of version 2
  {common.storage.s3,storage_config.aws}.signature_version -{,common.storage.}s3.signature-version
  *.object_store.s3.{send_content_md5,list_objects_version} -*object-store.s3.{send-content-md5,list-objects-version}
without access_key_id the key is taken as AWS tools take it; AWS_ENDPOINT_URL_STS names the token service
  *.object_store.s3.{native_aws_auth_enabled,sts_endpoint} -*object-store.s3.{native-aws-auth-enabled,sts-endpoint}
the parts of an upload are chosen for each
  *.object_store.s3.part_size -*object-store.s3.part-size
metrics count the requests of a bucket
  *.object_store.s3.trace.* -*object-store.s3.trace.*
a request of a bucket that fails or takes too long is repeated, one at a time
  {common.storage,storage_config}.{hedging,congestion_control}.* -{common.storage,store}.hedge-*
ranges of segments are read, 16 at a time
  storage_config.{max_parallel_get_chunk,max_chunk_batch_size} -store.{max-parallel-get-chunk,max-chunk-batch-size}
segments are cached as storage_config.segment_cache says
  chunk_store_config.* -store.{chunks-cache.*,chunks-cache-l2.*,skip-query-writeback-older-than}
segments carry their own index: there is nothing to ship or to load ahead
  storage_config.tsdb_shipper.{active_index_directory,cache_location,cache_ttl,resync_interval,query_ready_num_days}
  -tsdb.shipper.{active-index-directory,cache-location,cache-ttl,resync-interval,query-ready-num-days}
  storage_config.tsdb_shipper.{download_timeout,index_reader_mode,mode,ingestername,ingesterdbretainperiod}
  -tsdb.shipper.{download-timeout,index-reader-mode} storage_config.tsdb_shipper.streaming_index_*
  limits_config.query_ready_index_num_days -store.query-ready-index-num-days
calls of index gateways are neither logged nor placed by time
  storage_config.tsdb_shipper.*.{log_gateway_requests,time_based_sharding_buckets,min_shuffle_shard_size}
  -tsdb.shipper.*.{log-gateway-requests,time-based-sharding-buckets,min-shuffle-shard-size}
one encryption holds for the whole bucket: storage_config.aws.sse
  limits_config.s3_sse_*

delete requests are objects beside the data, and the index of a day says what is deleted
  common.{compactor_address,compactor_grpc_address} -common.{compactor-address,compactor-grpc-address}
  compactor.{delete_request_store_db_type,backup_delete_request_store_db_type}
  -compactor.delete-request-store.{db-type,backup-db-type}
  compactor.{deletion_marker_object_store_prefix,retention_table_timeout,retention_backoff_config.*}
  -compactor.{deletion-marker-object-store-prefix,retention-table-timeout,retention-backoff-config.*}
what one merge makes is one object
  compactor.upload_parallelism -compactor.upload-parallelism
any number of compactors share the days by their ring
  compactor.{horizontal_scaling_mode,worker_config.*,jobs_config.*} -compactor.horizontal-scaling-mode
no temporary files are written
  common.scratch_path -common.scratch-path ruler.rule_path -ruler.rule-path
Alertmanager has no version 1 of its API any more
  ruler.enable_alertmanager_v2 -ruler.alertmanager-use-v2
the address says whether TLS is spoken, and Node chooses version and ciphers
  ruler.evaluation.query_frontend.tls_{enabled,cipher_suites,min_version}
  -ruler.evaluation.query-frontend.tls-{enabled,cipher-suites,min-version}
the ring says who evaluates a rule as soon as it changes
  ruler.{search_pending_for,flush_period} -ruler.{search-pending-for,flush-period}
`;

/** Keys and flags of Loki that are accepted and change nothing, and why. */
export const ignoredKeys: readonly IgnoredRow[] = table
  .trim()
  .split(/\n+(?=\S)/)
  .map((block) => block.split("\n"))
  .map(([why = "", ...names]) => ({ why, keys: names.join(" ").trim().split(/\s+/) }));
