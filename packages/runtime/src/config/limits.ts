import { compileRegex, textForClients } from "@skald/model";
import type { z } from "zod";
import * as field from "./field.js";
import { defaultsOf } from "./print.js";
import { readSchema } from "./settings.js";

/** Labels from which the service of a stream is taken, best first. */
const serviceLabels = `
  service app application app_name name app_kubernetes_io_name container container_name
  k8s_container_name component workload job k8s_job_name
`
  .trim()
  .split(/\s+/);

/** Names under which agents send the level of a line, best first. */
const levelNames = `
  level LEVEL Level log.level severity SEVERITY Severity SeverityText lvl LVL Lvl
  severity_text Severity_Text SEVERITY_TEXT
`
  .trim()
  .split(/\s+/);

const rateLimits = field.flagged("ingester.", {
  ingestion_rate_strategy: field.choice(
    "global",
    ["global", "local"],
    "whether the rate is shared by all distributors, or each allows it",
    "distributor.ingestion-rate-limit-strategy",
  ),
  ingestion_rate_mb: field.float(
    4,
    "MB a second that a tenant may push: lines and structured metadata",
    "distributor.ingestion-rate-limit-mb",
  ),
  ingestion_burst_size_mb: field.float(
    6,
    "MB that a tenant may push at once; a larger push is never accepted",
    "distributor.ingestion-burst-size-mb",
  ),
  per_stream_rate_limit: field.size("3MB", "bytes a second that a stream may receive"),
  per_stream_rate_limit_burst: field.size("15MB", "bytes that a stream may receive at once"),
  max_streams_per_user: field.integer(0, "active streams of a tenant per ingester; 0: no limit"),
  max_global_streams_per_user: field.integer(
    5000,
    "active streams of a tenant in the cluster; 0: no limit",
  ),
});

const entryRules = field.flagged("validation.", {
  reject_old_samples: field.toggle(
    true,
    "refuse entries that are too old, or too far behind their stream",
  ),
  reject_old_samples_max_age: field.duration(
    "7d",
    "age from which an entry is too old",
    "validation.reject-old-samples.max-age",
  ),
  creation_grace_period: field.duration(
    "10m",
    "how far in the future an entry may lie",
    "validation.create-grace-period",
  ),
  max_days_per_push: field.integer(
    400,
    "UTC days that the entries of one push may lie in, because each takes memory of its own; 0: no limit",
  ),
  max_line_size: field.size(
    "256KB",
    "longest line that is accepted; 0: no limit",
    "distributor.max-line-size",
  ),
  max_line_size_truncate: field.toggle(
    false,
    "cut longer lines instead of refusing them",
    "distributor.max-line-size-truncate",
  ),
  max_line_size_truncate_identifier: field.text(
    "",
    "text put at the end of a line that was cut",
    "distributor.max-line-size-truncate-identifier",
  ),
  increment_duplicate_timestamp: field.toggle(
    false,
    "move an entry with the time of the one before it, and another line, 1 ns ahead",
    "validation.increment-duplicate-timestamps",
  ),
  allow_structured_metadata: field.toggle(true, "accept structured metadata; needs schema v13"),
  max_structured_metadata_size: field.size(
    "64KB",
    "names and values of the structured metadata of an entry; 0: no limit",
    "limits.max-structured-metadata-size",
  ),
  max_structured_metadata_entries_count: field.integer(
    128,
    "pairs of structured metadata of an entry; 0: no limit",
    "limits.max-structured-metadata-entries-count",
  ),
});

const labelRules = field.flagged("validation.", {
  max_label_name_length: field.integer(
    1024,
    "bytes of a label name",
    "validation.max-length-label-name",
  ),
  max_label_value_length: field.integer(
    2048,
    "bytes of a label value",
    "validation.max-length-label-value",
  ),
  max_label_names_per_series: field.integer(15, "labels of a stream; service_name does not count"),
  discover_service_name: field.list(
    serviceLabels,
    "labels whose value becomes service_name, best first; empty: no discovery",
  ),
  discover_log_levels: field.toggle(
    true,
    "find the level of each line and keep it as detected_level",
  ),
  log_level_fields: field.list(
    levelNames,
    "labels, metadata and fields that hold the level, best first",
  ),
  log_level_from_json_max_depth: field.integer(
    2,
    "how deep in a JSON line the level is looked for; 0: no limit",
  ),
  agent_label_fields: field.list(
    [],
    "fields that become labels in what agents send to /insert, /elasticsearch, /services/collector and /api/v2/logs, where a request names none; empty: those of each protocol",
  ),
  enforced_labels: field.list([], "labels that every stream must have"),
});

const blockedPushes = field.flagged("limits.", {
  block_ingestion_until: field.time("time until which pushes of the tenant are refused"),
  block_ingestion_status_code: field.integer(
    260,
    "status of a refused push; 200 drops it without a word",
    { min: 200, max: 599 },
  ),
});

const attributeRule = field.section("What becomes of attributes.", {
  action: field.choice(
    "structured_metadata",
    ["structured_metadata", "index_label", "drop"],
    "what the attribute becomes",
  ),
  attributes: field.list([], "names of attributes"),
  regex: field.text("", "expression that must match the whole name"),
});

type AttributeRule = field.Values<typeof attributeRule>;

/** What is wrong with a list of rules; undefined when it is good. */
function ruleProblem(rules: readonly AttributeRule[]): string | undefined {
  for (const { attributes, regex } of rules) {
    if (attributes.length > 0 && regex !== "") return "a rule has attributes or a regex, not both";
    if (attributes.length === 0 && regex === "") return "a rule needs attributes or a regex";
    try {
      compileRegex(regex, { anchored: true });
    } catch (error) {
      return error instanceof Error ? error.message : "bad regex";
    }
  }
  return undefined;
}

function scopeRuleProblem(rules: readonly AttributeRule[]): string | undefined {
  const isLabel = rules.some(({ action }) => action === "index_label");
  return isLabel ? "attributes of a scope cannot be index labels" : ruleProblem(rules);
}

const otlp = {
  otlp_config: field.section("How OTLP attributes are kept.", {
    resource_attributes: field.section("Attributes of the resource.", {
      ignore_defaults: field.toggle(false, "drop the built-in list of index labels"),
      attributes_config: field.sections(attributeRule, "rules; the first that matches wins", {
        check: ruleProblem,
      }),
    }),
    scope_attributes: field.sections(attributeRule, "rules for attributes of the scope", {
      check: scopeRuleProblem,
    }),
    log_attributes: field.sections(attributeRule, "rules for attributes of the record", {
      check: ruleProblem,
    }),
    severity_text_as_label: field.toggle(false, "keep the severity text as an index label"),
  }),
};

const queryRanges = field.flagged("querier.", {
  max_query_lookback: field.duration("0s", "data older than this is not looked at; 0: no limit"),
  max_query_length: field.duration(
    "30d1h",
    "longest time range of a query; 0: no limit",
    "store.max-query-length",
  ),
  max_query_range: field.duration("0s", "longest [range] in a query; 0: no limit"),
  query_timeout: field.duration("1m", "time after which a query is given up"),
});

const querySizes = {
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
  max_query_bytes: field.size(
    "64KB",
    "longest text of a query, of all its selectors together; 0: no limit",
    "querier.max-query-bytes",
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

const splitting = field.flagged("querier.", {
  split_queries_by_interval: field.duration(
    "1h",
    "least time range of the parts of a query over a range that go to queriers by themselves, longer where little is read, and of what is cached; 0: not split",
  ),
  max_query_parallelism: field.integer(32, "parts of a query that run at a time"),
});

const blockedQueries = {
  blocked_queries: field.sections(blockedQuery, "queries that are refused", {
    check: (rules) => rules.map(blockedQueryProblem).find((problem) => problem !== undefined),
  }),
};

const streamRetention = field.section("How long some streams are kept.", {
  selector: field.text("", "stream selector"),
  priority: field.integer(0, "of several rules that match, the highest wins"),
  period: field.duration("0s", "how long entries are kept; 24h at least"),
});

const retention = {
  retention_period: field.duration(
    "0s",
    "how long entries are kept; 0: for ever",
    "store.retention",
  ),
  retention_stream: field.sections(streamRetention, "other periods for some streams"),
  deletion_mode: field.choice(
    "filter-and-delete",
    ["disabled", "filter-only", "filter-and-delete"],
    "what a delete request does",
    "compactor.deletion-mode",
  ),
  max_pending_delete_requests: field.integer(
    1000,
    "delete requests that may wait to be carried out; 0: no limit",
    "compactor.max-pending-delete-requests",
  ),
};

const sharding = {
  ingestion_partitions_tenant_shard_size: field.integer(
    0,
    "ingesters that a tenant writes to; 0: all",
    "limits.ingestion-partition-tenant-shard-size",
  ),
};

const ruler = {
  ruler_max_rules_per_rule_group: field.integer(
    0,
    "rules in a group; 0: no limit",
    "ruler.max-rules-per-rule-group",
  ),
  ruler_max_rule_groups_per_tenant: field.integer(
    0,
    "rule groups of a tenant; 0: no limit",
    "ruler.max-rule-groups-per-tenant",
  ),
  ruler_min_rule_evaluation_interval: field.duration(
    "0s",
    "least pause between evaluations of a rule group; groups that ask for less get this",
    "ruler.min-rule-evaluation-interval",
  ),
  ruler_tenant_shard_size: field.integer(
    0,
    "rulers that work for a tenant; 0: all",
    "ruler.tenant-shard-size",
  ),
  ruler_remote_write_disabled: field.toggle(false, "send no samples of this tenant"),
  ruler_remote_write_config: field.mapOfMaps("remote write clients of this tenant"),
  ruler_remote_evaluation_timeout: field.duration("0s", "time limit of remote evaluation"),
  ruler_remote_evaluation_max_response_size: field.size("0B", "largest answer; 0: no limit"),
};

const patterns = field.flagged("limits.", {
  pattern_ingester_tokenizable_json_fields_default: field.list(
    ["log", "message", "msg", "msg_", "_msg", "content"],
    "JSON fields whose text is searched for patterns",
    "limits.pattern-ingester-tokenizable-json-fields",
  ),
  pattern_ingester_tokenizable_json_fields_append: field.list([], "further such fields"),
  pattern_ingester_tokenizable_json_fields_delete: field.list(
    [],
    "fields taken away from the list",
  ),
});

const overrides = {
  per_tenant_override_config: field.text(
    "",
    "older name of runtime_config.file",
    "limits.per-user-override-config",
  ),
  per_tenant_override_period: field.duration(
    "10s",
    "older name of runtime_config.period",
    "limits.per-user-override-period",
  ),
};

/** `limits_config`: what a tenant may do. A tenant's overrides may have each of these keys. */
export const limitsConfig = field.section("Limits of a tenant; overrides may change them.", {
  // Pushes.
  ...rateLimits,
  ...entryRules,
  ...labelRules,
  ...blockedPushes,
  ...otlp,
  // Queries.
  ...queryRanges,
  ...querySizes,
  ...splitting,
  ...blockedQueries,
  // What is stored, and what works on it.
  ...retention,
  ...sharding,
  ...ruler,
  ...patterns,
  ...overrides,
});

/**
 * The limits of one tenant, spelled as in YAML. Durations and times are milliseconds, sizes are bytes; never changed in
 * place.
 */
export type Limits = Readonly<z.infer<typeof limitsConfig>>;

/** The limits of a tenant for which nothing is configured. */
export const defaultLimits = defaultsOf(readSchema(limitsConfig)) as Limits;
