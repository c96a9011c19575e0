import { cacheBlock, field, grpcClientBlock } from "@skald/runtime/config";

/** `frontend`: how queries are received. */
export const frontendConfig = field.section(
  "Receives queries, splits them, and puts the answers together.",
  {
    max_body_size: field.size("10MB", "largest body of a request", "frontend.max-body-size"),
    scheduler_address: field.text(
      "",
      "query schedulers of a process that is a frontend only: host and port, or a name with dns+ or dnssrv+; with commas several",
      "frontend.scheduler-address",
    ),
    scheduler_dns_lookup_period: field.duration(
      "10s",
      "pause between look-ups of the address",
      "frontend.scheduler-dns-lookup-period",
      { min: 1 },
    ),
    grpc_client_config: grpcClientBlock("frontend.grpc-client-config"),
    compress_responses: field.toggle(
      true,
      "compress answers when the client allows it",
      "querier.compress-http-responses",
    ),
    log_queries_longer_than: field.duration(
      "0s",
      "log queries that take longer, with statistics; 0: none; less: every query",
      "frontend.log-queries-longer-than",
      { min: Number.NEGATIVE_INFINITY },
    ),
    query_stats_enabled: field.toggle(
      false,
      "log every query, with statistics",
      "frontend.query-stats-enabled",
    ),
    support_parquet_encoding: field.toggle(
      false,
      "answer in Parquet when the client asks for it",
      "frontend.support-parquet-encoding",
    ),
  },
);

const resultsCache = (prefix: string, compression: string) =>
  field.section("A cache of results.", {
    cache: cacheBlock(prefix),
    compression: field.choice(
      "",
      ["", "snappy"],
      "compression of its values, by zstd",
      compression,
    ),
  });

/** `query_range`: how queries are split, cached and tried again. */
export const queryRangeConfig = field.section("How queries are split, cached and tried again.", {
  align_queries_with_step: field.toggle(
    false,
    "move start and end down to a multiple of the step",
    "querier.align-querier-with-step",
  ),
  results_cache: resultsCache("frontend", "frontend.compression"),
  cache_results: field.toggle(
    false,
    "cache results of metric queries over a range",
    "querier.cache-results",
  ),
  max_retries: field.integer(
    5,
    "how often a part of a query is tried again that another querier may have an answer to",
    "querier.max-retries-per-request",
  ),
  cache_index_stats_results: field.toggle(
    true,
    "cache index statistics",
    "querier.cache-index-stats-results",
  ),
  index_stats_results_cache: resultsCache(
    "frontend.index-stats-results-cache",
    "frontend.index-stats-results-cache.compression",
  ),
  cache_volume_results: field.toggle(true, "cache volumes", "querier.cache-volume-results"),
  volume_results_cache: resultsCache(
    "frontend.volume-results-cache",
    "frontend.volume-results-cache.compression",
  ),
  cache_instant_metric_results: field.toggle(
    false,
    "cache results of instant metric queries",
    "querier.cache-instant-metric-results",
  ),
  instant_metric_results_cache: resultsCache(
    "frontend.instant-metric-results-cache",
    "frontend.instant-metric-results-cache.compression",
  ),
  cache_series_results: field.toggle(true, "cache series", "querier.cache-series-results"),
  series_results_cache: resultsCache(
    "frontend.series-results-cache",
    "frontend.series-results-cache.compression",
  ),
  cache_label_results: field.toggle(true, "cache labels", "querier.cache-label-results"),
  label_results_cache: resultsCache(
    "frontend.label-results-cache",
    "frontend.label-results-cache.compression",
  ),
});
