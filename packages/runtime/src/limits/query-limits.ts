import { compileRegex, textForClients } from "@skald/model";
import * as field from "../config/field.js";

const notSplit =
  "only range queries are split, by split_queries_by_interval; scans are shared out among threads as they are";

const ranges = {
  max_query_lookback: field.duration(
    "0s",
    "data older than this is not looked at; 0: no limit",
    "querier.max-query-lookback",
  ),
  max_query_length: field.duration(
    "30d1h",
    "longest time range of a query; 0: no limit",
    "store.max-query-length",
  ),
  max_query_range: field.duration(
    "0s",
    "longest [range] in a query; 0: no limit",
    "querier.max-query-range",
  ),
  query_timeout: field.duration(
    "1m",
    "time after which a query is given up",
    "querier.query-timeout",
  ),
};

const sizes = {
  max_entries_limit_per_query: field.integer(
    5000,
    "largest limit parameter; 0: no limit",
    "validation.max-entries-limit",
  ),
  max_query_series: field.integer(
    500,
    "series in the answer of a metric query",
    "querier.max-query-series",
  ),
  max_streams_matchers_per_query: field.integer(
    1000,
    "matchers in one query",
    "querier.max-streams-matcher-per-query",
  ),
  max_concurrent_tail_requests: field.integer(
    10,
    "tails of a tenant at a time",
    "querier.max-concurrent-tail-requests",
  ),
  max_query_bytes_read: field.size(
    "0B",
    "bytes that a query may read; 0: no limit",
    "frontend.max-query-bytes-read",
  ),
  max_query_memory_bytes: field.size(
    "512MB",
    "series, samples and lines that a query may hold at a time; 0: no limit",
    "frontend.max-query-memory-bytes",
  ),
  max_querier_bytes_read: field.size(
    "150GB",
    "bytes that a part of a query may read; 0: no limit",
    "frontend.max-querier-bytes-read",
    { unused: notSplit },
  ),
  max_chunks_per_query: field.integer(
    2_000_000,
    "chunks that a query may read; 0: no limit",
    "store.query-chunk-limit",
    { unused: "there are no chunks; use max_query_bytes_read" },
  ),
  cardinality_limit: field.integer(
    100_000,
    "index entries that one look-up may return",
    "store.cardinality-limit",
    { unused: "there is no index of series to look up; use max_query_bytes_read" },
  ),
  required_labels: field.list([], "labels that a query must match on"),
  minimum_labels_number: field.integer(0, "matchers that a query must have"),
  volume_enabled: field.toggle(true, "answer volume queries", "limits.volume-enabled"),
  volume_max_series: field.integer(
    1000,
    "series in the answer of a volume query",
    "limits.volume-max-series",
  ),
};

const blockedQuery = field.section("Queries that are refused.", {
  pattern: field.text("", "the query as it is sent, or an expression that is found in it"),
  regex: field.toggle(false, "whether the pattern is an expression"),
  hash: field.integer(0, "FNV-1 hash of the query, 32 bits; wins over the pattern"),
  types: field.list([], "metric, filter, limited; empty: all"),
  query_tags: field.text("", "tags that the request must carry in X-Query-Tags, as a=b,c=d"),
});

const queryTypes = ["metric", "filter", "limited"];

/** What is wrong with a rule: one that says nothing would refuse every query. */
function blockedQueryProblem(rule: field.Values<typeof blockedQuery>): string | undefined {
  const { pattern, regex, hash, types, query_tags } = rule;
  const unknown = types.find((type) => !queryTypes.includes(type));
  if (unknown !== undefined) return `"${unknown}" is not one of ${queryTypes.join(", ")}`;
  if (pattern === "" && hash === 0 && types.length === 0 && query_tags === "")
    return "an entry of blocked_queries needs a pattern, a hash, types or query_tags";
  if (!regex) return undefined;
  try {
    compileRegex(pattern, { anchored: false });
    return undefined;
  } catch (error) {
    return textForClients(error);
  }
}

const alwaysFresh =
  "what is cached is compared with what was written since: it is never older than the rows";

const splitting = {
  split_queries_by_interval: field.duration(
    "1h",
    "time range of the parts of a query over a range that go to queriers by themselves, and of what is cached; 0: not split",
    "querier.split-queries-by-interval",
  ),
  split_metadata_queries_by_interval: field.duration(
    "1d",
    "the same for labels and series",
    "querier.split-metadata-queries-by-interval",
    { unused: notSplit },
  ),
  split_recent_metadata_queries_by_interval: field.duration(
    "1h",
    "the same within recent_metadata_query_window",
    "experimental.querier.split-recent-metadata-queries-by-interval",
    { unused: notSplit },
  ),
  recent_metadata_query_window: field.duration(
    "0s",
    "how far back the interval for recent labels and series is used",
    "experimental.querier.recent-metadata-query-window",
    { unused: notSplit },
  ),
  split_instant_metric_queries_by_interval: field.duration(
    "1h",
    "the same for instant metric queries",
    "querier.split-instant-metric-queries-by-interval",
    { unused: notSplit },
  ),
  split_ingester_queries_by_interval: field.duration(
    "0s",
    "the same for the time that ingesters hold; 0: as the others",
    "querier.split-ingester-queries-by-interval",
    { unused: notSplit },
  ),
  min_sharding_lookback: field.duration(
    "0s",
    "queries of data younger than this are not sharded",
    "frontend.min-sharding-lookback",
    { unused: notSplit },
  ),
  max_query_parallelism: field.integer(
    32,
    "parts of a query that run at a time",
    "querier.max-query-parallelism",
  ),
  tsdb_max_query_parallelism: field.integer(
    128,
    "the same where the index is TSDB",
    "querier.tsdb-max-query-parallelism",
    { unused: notSplit },
  ),
  tsdb_max_bytes_per_shard: field.size(
    "600MB",
    "bytes that a shard should read at most",
    "querier.tsdb-max-bytes-per-shard",
    { unused: notSplit },
  ),
  tsdb_sharding_strategy: field.choice(
    "power_of_two",
    ["power_of_two", "bounded"],
    "how the number of shards is chosen",
    "limits.tsdb-sharding-strategy",
    { unused: notSplit },
  ),
  tsdb_precompute_chunks: field.toggle(
    false,
    "look up chunks when shards are planned",
    "querier.tsdb-precompute-chunks",
    { unused: notSplit },
  ),
  shard_aggregations: field.list(
    [],
    "aggregations that may be sharded though approximate",
    undefined,
    { unused: notSplit },
  ),
};

const fairTurns = "tenants take turns at every querier";

const fairness = {
  max_queriers_per_tenant: field.float(
    0,
    "queriers that work for a tenant, or the part of them when less than 1; 0: all",
    "frontend.max-queriers-per-tenant",
    { unused: fairTurns },
  ),
  max_query_capacity: field.float(
    0,
    "part of the queriers that a tenant may take; 0: no limit",
    "frontend.max-query-capacity",
    { max: 1, unused: fairTurns },
  ),
  max_cache_freshness_per_query: field.duration(
    "10m",
    "results younger than this are not cached",
    "frontend.max-cache-freshness",
    { unused: alwaysFresh },
  ),
  max_metadata_cache_freshness: field.duration(
    "1d",
    "the same for labels and series",
    "frontend.max-metadata-cache-freshness",
    { unused: alwaysFresh },
  ),
  max_stats_cache_freshness: field.duration(
    "10m",
    "the same for index statistics",
    "frontend.max-stats-cache-freshness",
    { unused: alwaysFresh },
  ),
  query_ready_index_num_days: field.integer(
    0,
    "days of index that are loaded ahead",
    "store.query-ready-index-num-days",
    { unused: "segments carry their own index, nothing is loaded ahead" },
  ),
  index_gateway_shard_size: field.integer(
    0,
    "index gateways that serve a tenant; 0: all",
    "index-gateway.shard-size",
    { unused: "index_gateway.ring.replication_factor says how many, of every tenant" },
  ),
  index_gateway_max_capacity: field.float(
    1,
    "part of the index gateways that a tenant may take",
    "index-gateway.max-capacity",
    { max: 1, unused: "index_gateway.ring.replication_factor says how many, of every tenant" },
  ),
  blocked_queries: field.sections(blockedQuery, "queries that are refused", {
    check: (rules) => rules.map(blockedQueryProblem).find((problem) => problem !== undefined),
  }),
};

/** The limits that a query is held against. */
export const queryLimits = { ...ranges, ...sizes, ...splitting, ...fairness };
