import {
  byScheduler,
  cacheBlock,
  field,
  gone,
  grpcClientBlock,
  tlsClientBlock,
} from "@skald/runtime/config";

const notLogged = "queries are not logged yet";

/** `frontend`: how queries are received. */
export const frontendConfig = field.section(
  "Receives queries, splits them, and puts the answers together.",
  {
    log_queries_longer_than: field.duration(
      "0s",
      "log queries that take longer; 0: none",
      "frontend.log-queries-longer-than",
      { unused: notLogged },
    ),
    log_query_request_headers: field.list(
      [],
      "headers that are logged with a query",
      "frontend.log-query-request-headers",
      { unused: notLogged },
    ),
    max_body_size: field.size("10MB", "largest body of a request", "frontend.max-body-size"),
    query_stats_enabled: field.toggle(
      false,
      "log the statistics of each query",
      "frontend.query-stats-enabled",
      { unused: notLogged },
    ),
    max_outstanding_per_tenant: field.integer(
      2048,
      "parts of queries of a tenant that may wait; more are answered with 429",
      "querier.max-outstanding-requests-per-tenant",
      { min: 1, unused: "query_scheduler.max_outstanding_requests_per_tenant bounds what waits" },
    ),
    querier_forget_delay: field.duration(
      "0s",
      "time after which a lost querier is forgotten",
      "query-frontend.querier-forget-delay",
      { unused: byScheduler },
    ),
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
    scheduler_worker_concurrency: field.integer(
      5,
      "queries that are handed to a scheduler at a time",
      "frontend.scheduler-worker-concurrency",
      { unused: "a connection carries all of them" },
    ),
    grpc_client_config: grpcClientBlock("frontend.grpc-client-config", { used: true }),
    graceful_shutdown_timeout: field.duration(
      "5m",
      "time that running queries get at shutdown",
      "frontend.graceful-shutdown-timeout",
      { unused: "server.graceful_shutdown_timeout bounds that" },
    ),
    instance_interface_names: field.list(
      [],
      "network interfaces of which one gives the address; empty: private ones",
      "frontend.instance-interface-names",
      { unused: byScheduler },
    ),
    instance_enable_ipv6: field.toggle(
      false,
      "allow an IPv6 address",
      "frontend.instance-enable-ipv6",
      { unused: byScheduler },
    ),
    instance_addr: field.text("", "address told to schedulers", "frontend.instance-addr", {
      unused: byScheduler,
    }),
    encoding: field.choice(
      "protobuf",
      ["protobuf", "json"],
      "how answers travel between services",
      "frontend.encoding",
      { unused: "answers travel as protobuf" },
    ),
    compress_responses: field.toggle(
      true,
      "compress answers when the client allows it",
      "querier.compress-http-responses",
    ),
    downstream_url: field.text(
      "",
      "pass all queries on to this address",
      "frontend.downstream-url",
      { unused: "requests are not passed on" },
    ),
    tail_proxy_url: field.text("", "pass tails on to this querier", "frontend.tail-proxy-url", {
      unused: "requests are not passed on",
    }),
    tail_tls_config: tlsClientBlock("frontend.tail-tls-config"),
    support_parquet_encoding: field.toggle(
      false,
      "answer in Parquet when the client asks for it",
      "frontend.support-parquet-encoding",
    ),
  },
);

const resultsCache = (prefix: string, compression: string) =>
  field.section("A cache of results.", {
    cache: cacheBlock(prefix, { used: true }),
    compression: field.choice(
      "",
      ["", "snappy"],
      "compression of its values, by zstd",
      compression,
      {
        used: true,
      },
    ),
  });

/** `query_range`: how queries are split, cached and tried again. */
export const queryRangeConfig = field.section(
  "How queries are split, cached and tried again.",
  {
    align_queries_with_step: field.toggle(
      false,
      "move start and end down to a multiple of the step",
      "querier.align-querier-with-step",
      { used: true },
    ),
    results_cache: resultsCache("frontend", "frontend.compression"),
    cache_results: field.toggle(
      false,
      "cache results of metric queries over a range",
      "querier.cache-results",
      { used: true },
    ),
    max_retries: field.integer(
      5,
      "how often a part of a query is tried again that another querier may have an answer to",
      "querier.max-retries-per-request",
      { used: true },
    ),
    parallelise_shardable_queries: field.toggle(
      true,
      "split queries by streams",
      "querier.parallelise-shardable-queries",
    ),
    shard_aggregations: field.list(
      [],
      "further aggregations to split: quantile_over_time, last_over_time, first_over_time, approx_topk",
      "querier.shard-aggregations",
    ),
    cache_index_stats_results: field.toggle(
      true,
      "cache index statistics",
      "querier.cache-index-stats-results",
      { used: true },
    ),
    index_stats_results_cache: resultsCache(
      "frontend.index-stats-results-cache",
      "frontend.index-stats-results-cache.compression",
    ),
    cache_volume_results: field.toggle(true, "cache volumes", "querier.cache-volume-results", {
      used: true,
    }),
    volume_results_cache: resultsCache(
      "frontend.volume-results-cache",
      "frontend.volume-results-cache.compression",
    ),
    cache_instant_metric_results: field.toggle(
      false,
      "cache results of instant metric queries",
      "querier.cache-instant-metric-results",
      { used: true },
    ),
    instant_metric_results_cache: resultsCache(
      "frontend.instant-metric-results-cache",
      "frontend.instant-metric-results-cache.compression",
    ),
    instant_metric_query_split_align: field.toggle(
      false,
      "split instant metric queries at multiples of the interval",
      "querier.instant-metric-query-split-align",
    ),
    cache_series_results: field.toggle(true, "cache series", "querier.cache-series-results", {
      used: true,
    }),
    series_results_cache: resultsCache(
      "frontend.series-results-cache",
      "frontend.series-results-cache.compression",
    ),
    cache_label_results: field.toggle(true, "cache labels", "querier.cache-label-results", {
      used: true,
    }),
    label_results_cache: resultsCache(
      "frontend.label-results-cache",
      "frontend.label-results-cache.compression",
    ),
  },
  {
    unused: "scans are shared out among threads as they are",
    ignored: {
      split_queries_by_interval: "use limits_config.split_queries_by_interval instead",
      forward_headers_list: gone,
    },
  },
);
