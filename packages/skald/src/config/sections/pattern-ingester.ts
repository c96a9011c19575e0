import { field, grpcClientBlock, lifecyclerBlock } from "@skald/runtime/config";

const flag = (name: string): string => `pattern-ingester.${name}`;

/** `pattern_ingester`: patterns of lines. */
export const patternIngesterConfig = field.section("Finds patterns in new lines.", {
  enabled: field.toggle(false, "run it", flag("enabled")),
  lifecycler: lifecyclerBlock({ ring: flag("ring"), member: flag("") }, {}),
  client_config: field.section("How it is called.", {
    grpc_client_config: grpcClientBlock(flag("client")),
    remote_timeout: field.duration("5s", "time limit", flag("client.timeout")),
  }),
  flush_check_period: field.duration("1m", "pause between looks", flag("flush-check-period")),
  max_clusters: field.integer(300, "patterns of a stream", flag("max-clusters")),
  max_eviction_ratio: field.float(
    0.25,
    "part of evictions above which a stream is given up",
    flag("max-eviction-ratio"),
  ),
  max_allowed_line_length: field.integer(
    3000,
    "longer lines are not looked at",
    flag("max-allowed-line-length"),
  ),
  retain_for: field.duration("3h", "time to keep patterns", flag("retain-for")),
  pattern_sample_interval: field.duration("10s", "resolution", flag("sample-interval")),
});
