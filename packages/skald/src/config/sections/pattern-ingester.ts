import { field, grpcClientBlock, lifecyclerBlock } from "@skald/runtime/config";

const noCopies = "patterns and volumes are not pushed back as streams";
const noPatterns = "patterns are not sent anywhere";
const client = {
  http_client_config: noPatterns,
  basic_auth: noPatterns,
  backoff_config: noPatterns,
};

const flag = (name: string): string => `pattern-ingester.${name}`;

const pusher = (prefix: string, pushPeriod: string) => ({
  loki_address: field.text("", "where it is pushed", flag(`${prefix}.loki-address`)),
  timeout: field.duration("10s", "time limit", flag(`${prefix}.timeout`)),
  push_period: field.duration(pushPeriod, "pause between pushes", flag(`${prefix}.push-period`)),
  use_tls: field.toggle(false, "speak TLS", flag(`${prefix}.tls`)),
});

/** `pattern_ingester`: patterns of lines. */
export const patternIngesterConfig = field.section(
  "Finds patterns in new lines.",
  {
    enabled: field.toggle(false, "run it", flag("enabled")),
    lifecycler: lifecyclerBlock(
      {
        ring: "pattern-ingester.ring",
        member: "pattern-ingester.",
        distributor: "pattern-ingester.distributor",
      },
      1,
      "the patterns of a stream are found by one",
    ),
    client_config: field.section(
      "How it is called.",
      {
        grpc_client_config: grpcClientBlock(flag("client"), { used: true }),
        remote_timeout: field.duration("5s", "time limit", flag("client.timeout")),
      },
      { ignored: { pool_config: "a connection is kept for each that is called" } },
    ),
    concurrent_flushes: field.integer(32, "flushes at a time", flag("concurrent-flushes"), {
      unused: "one thread saves all patterns",
    }),
    flush_check_period: field.duration("1m", "pause between looks", flag("flush-check-period")),
    max_clusters: field.integer(300, "patterns of a stream", flag("max-clusters")),
    max_eviction_ratio: field.float(
      0.25,
      "part of evictions above which a stream is given up",
      flag("max-eviction-ratio"),
    ),
    metric_aggregation: field.section(
      "Volume of each service.",
      {
        sample_period: field.duration(
          "10s",
          "resolution",
          flag("metric-aggregation.downsample-period"),
        ),
        ...pusher("metric-aggregation", "30s"),
      },
      { unused: noCopies, ignored: client },
    ),
    pattern_persistence: field.section(
      "Patterns kept as a stream.",
      {
        ...pusher("pattern-persistence", "1m"),
        batch_size: field.integer(
          1000,
          "patterns in a push",
          flag("pattern-persistence.batch-size"),
        ),
      },
      { unused: noCopies, ignored: client },
    ),
    connection_timeout: field.duration("2s", "time limit to connect", flag("connection-timeout"), {
      unused: "client_config.grpc_client_config.connect_timeout bounds that",
    }),
    max_allowed_line_length: field.integer(
      3000,
      "longer lines are not looked at",
      flag("max-allowed-line-length"),
    ),
    retain_for: field.duration("3h", "time to keep patterns", flag("retain-for")),
    max_chunk_age: field.duration("1h", "time range of a chunk", flag("max-chunk-age"), {
      unused: "samples are kept one by one until retain_for",
    }),
    pattern_sample_interval: field.duration("10s", "resolution", flag("sample-interval")),
    volume_threshold: field.float(
      0.99,
      "part of the volume whose patterns are kept",
      flag("volume-threshold"),
      { unused: "all patterns are kept" },
    ),
  },
  { ignored: { tee_config: "lines are gathered for a second, and some stand for all" } },
);
