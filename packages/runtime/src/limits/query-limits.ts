import { compileRegex, textForClients } from "@skald/model";
import * as field from "../config/field.js";

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

const splitting = {
  split_queries_by_interval: field.duration(
    "1h",
    "time range of the parts of a query over a range that go to queriers by themselves, and of what is cached; 0: not split",
    "querier.split-queries-by-interval",
  ),
  max_query_parallelism: field.integer(
    32,
    "parts of a query that run at a time",
    "querier.max-query-parallelism",
  ),
};

const blocking = {
  blocked_queries: field.sections(blockedQuery, "queries that are refused", {
    check: (rules) => rules.map(blockedQueryProblem).find((problem) => problem !== undefined),
  }),
};

/** The limits that a query is held against. */
export const queryLimits = { ...ranges, ...sizes, ...splitting, ...blocking };
