/**
 * What runs without `-config.file`: one node that keeps everything below ./data, for a laptop or a first try. Rates are
 * set so that one agent on the same machine never meets them; the other limits are the usual ones.
 */
export const defaultYaml = `auth_enabled: false

server:
  log_format: json

common:
  path_prefix: ./data
  replication_factor: 1
  ring:
    kvstore:
      store: inmemory

ingester:
  wal:
    flush_on_shutdown: true

limits_config:
  ingestion_rate_mb: 1024
  ingestion_burst_size_mb: 1024
  per_stream_rate_limit: 1GB
  per_stream_rate_limit_burst: 1GB
  max_global_streams_per_user: 100000
  volume_enabled: true
`;
