/** Configuration files in the shapes that people have, for tests: each must start. */
export const samples: Readonly<Record<string, string>> = {
  "one node": `
auth_enabled: false
server:
  http_listen_port: 3100
  grpc_listen_port: 9096
  log_level: debug
  grpc_server_max_concurrent_streams: 1000
common:
  instance_addr: 127.0.0.1
  path_prefix: /tmp/node
  storage:
    filesystem:
      chunks_directory: /tmp/node/chunks
      rules_directory: /tmp/node/rules
  replication_factor: 1
  ring: {kvstore: {store: inmemory}}
query_range:
  results_cache: {cache: {embedded_cache: {enabled: true, max_size_mb: 100}}}
limits_config: {metric_aggregation_enabled: true}
schema_config:
  configs:
    - {from: 2020-10-24, store: tsdb, object_store: filesystem, schema: v13, index: {prefix: index_, period: 24h}}
pattern_ingester:
  enabled: true
  metric_aggregation: {loki_address: localhost:3100}
ruler: {alertmanager_url: "http://localhost:9093"}
frontend: {encoding: protobuf}
`,
  "an image": `
auth_enabled: false
server: {http_listen_port: 3100}
common:
  ring: {instance_addr: 127.0.0.1, kvstore: {store: inmemory}}
  replication_factor: 1
  path_prefix: /var/lib/logs
schema_config:
  configs:
    - from: "2020-05-15"
      store: tsdb
      object_store: filesystem
      schema: v13
      index:
        prefix: index_
        period: 24h
storage_config: {filesystem: {directory: /var/lib/logs/chunks}}
limits_config:
pattern_ingester:
`,
  "several nodes with gossip": `
auth_enabled: true
server: {http_listen_address: 0.0.0.0, grpc_listen_address: 0.0.0.0, http_listen_port: 3100, grpc_listen_port: 9095, log_level: info}
common:
  path_prefix: /data
  compactor_grpc_address: backend:9095
  replication_factor: 3
  storage:
    s3: {endpoint: minio:9000, insecure: true, bucketnames: chunks, access_key_id: a, secret_access_key: b, s3forcepathstyle: true}
  ring: {kvstore: {store: memberlist}, heartbeat_period: 1m, heartbeat_timeout: 5m}
storage_config:
  aws: {s3: "s3://key:secret@minio:9000/chunks", s3forcepathstyle: true}
  tsdb_shipper: {active_index_directory: /data/index, cache_location: /data/cache}
memberlist: {join_members: [read, write], bind_addr: [0.0.0.0], bind_port: 7946, cluster_label: c, gossip_interval: 2s}
ingester:
  lifecycler: {join_after: 10s, observe_period: 5s, ring: {replication_factor: 3, kvstore: {store: memberlist}}, final_sleep: 0s}
  wal: {enabled: true, dir: /data/wal, flush_on_shutdown: false}
  chunk_idle_period: 1m
  max_chunk_age: 1m
  chunk_encoding: snappy
  chunk_target_size: 1.572864e+06
  chunk_block_size: 262144
  flush_op_timeout: 10s
ruler:
  enable_api: true
  enable_sharding: true
  wal: {dir: /data/ruler-wal}
  evaluation: {mode: remote, query_frontend: {address: "dns:///read:9095"}}
  storage: {type: local, local: {directory: /data/rules}}
  rule_path: /data/prom-rules
  remote_write:
    enabled: true
    clients:
      local: {url: "http://prometheus:9090/api/v1/write", queue_config: {capacity: 1}}
query_range: {align_queries_with_step: true, max_retries: 5, cache_results: true}
frontend: {log_queries_longer_than: 5s, compress_responses: true}
query_scheduler: {max_outstanding_requests_per_tenant: 1024}
querier: {query_ingesters_within: 2h}
compactor: {working_directory: /data/compactor, retention_enabled: true, delete_request_store: s3, horizontal_scaling_mode: "\${MODE:-worker}"}
limits_config: {max_cache_freshness_per_query: 10m, reject_old_samples: true, reject_old_samples_max_age: 30m, split_queries_by_interval: 15m, volume_enabled: true}
schema_config:
  configs:
    - {from: 2020-08-01, store: boltdb-shipper, object_store: s3, schema: v11, index: {prefix: index_, period: 24h}}
    - {from: 2023-07-11, store: tsdb, object_store: filesystem, schema: v13, index: {prefix: index_, period: 24h}}
`,
  "a chart": `
auth_enabled: true
bloom_build: {builder: {planner_address: "planner:9095"}, enabled: false}
bloom_gateway: {client: {addresses: "dns+gateway:9095"}, enabled: false}
chunk_store_config:
  chunk_cache_config:
    background: {writeback_buffer: 500000, writeback_goroutines: 1, writeback_size_limit: 500MB}
    default_validity: 0s
    memcached: {batch_size: 4, parallelism: 5}
    memcached_client: {addresses: "dnssrvnoa+_client._tcp.chunks", consistent_hash: true, max_idle_conns: 72, timeout: 2000ms}
common:
  compactor_grpc_address: "backend:9095"
  path_prefix: /var/logs
  replication_factor: 3
  storage:
    gcs: {bucket_name: chunks, chunk_buffer_size: 0, request_timeout: 0s, enable_http2: true}
frontend: {scheduler_address: "", tail_proxy_url: ""}
frontend_worker: {scheduler_address: ""}
index_gateway: {mode: simple}
ingester: {chunk_encoding: snappy, autoforget_unhealthy: true}
limits_config:
  max_cache_freshness_per_query: 10m
  query_timeout: 300s
  reject_old_samples: true
  reject_old_samples_max_age: 168h
  split_queries_by_interval: 15m
  volume_enabled: true
  retention_period: 744h
  retention_stream: [{selector: '{env="dev"}', priority: 1, period: 24h}]
memberlist: {join_members: [memberlist]}
pattern_ingester: {enabled: false}
query_range:
  align_queries_with_step: true
  cache_results: true
  results_cache:
    cache: {default_validity: 12h, memcached_client: {addresses: "dnssrvnoa+_client._tcp.results", timeout: 500ms, update_interval: 1m}}
ruler: {storage: {type: gcs, gcs: {bucket_name: rules}}, wal: {dir: /var/logs/ruler-wal}}
runtime_config: {file: /etc/runtime-config/runtime-config.yaml}
schema_config:
  configs:
    - {from: "2024-04-01", store: tsdb, object_store: filesystem, schema: v13, index: {prefix: index_, period: 24h}}
server: {grpc_listen_port: 9095, http_listen_port: 3100, http_server_read_timeout: 600s, http_server_write_timeout: 600s}
storage_config:
  bloom_shipper: {working_directory: /var/logs/bloomshipper}
  boltdb_shipper: {index_gateway_client: {server_address: "dns+backend:9095"}}
  hedging: {at: 250ms, max_per_second: 20, up_to: 3}
  tsdb_shipper: {index_gateway_client: {server_address: "dns+backend:9095"}}
  use_thanos_objstore: false
tracing: {enabled: true}
analytics: {reporting_enabled: false}
operational_config: {log_push_request: true}
ui: {discovery: {join_peers: [x]}}
`,
  "an old file": `
auth_enabled: false
server: {http_listen_port: 3100}
ingester:
  lifecycler: {address: 127.0.0.1, ring: {kvstore: {store: inmemory}, replication_factor: 1}, final_sleep: 0s}
  chunk_idle_period: 5m
  chunk_retain_period: 30s
  max_transfer_retries: 0
schema_config:
  configs:
    - {from: 2018-04-15, store: tsdb, object_store: filesystem, schema: v11, index: {prefix: index_, period: 24h}, chunks: {prefix: c_}, row_shards: 16}
    - {from: 2024-04-15, store: tsdb, object_store: filesystem, schema: v13, index: {prefix: index_, period: 24h}}
storage_config:
  filesystem: {directory: /tmp/chunks}
  index_queries_cache_config: {}
chunk_store_config: {max_look_back_period: 0s}
table_manager: {retention_deletes_enabled: false, retention_period: 0s}
limits_config:
  enforce_metric_name: false
  unordered_writes: true
  per_tenant_override_config: /etc/overrides.yaml
  per_tenant_override_period: 5s
  ruler_remote_write_url: http://p
query_range: {split_queries_by_interval: 24h, results_cache: {cache: {enable_fifocache: true, fifocache: {size: 1024}}}}
frontend_worker: {parallelism: 4}
querier: {engine: {timeout: 3m}}
compactor: {working_directory: /tmp/compactor, shared_store: filesystem}
`,
};
