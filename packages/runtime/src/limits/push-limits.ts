import { compileRegex } from "@skald/model";
import * as field from "../config/field.js";

/** Labels from which the service of a stream is taken, best first. */
const serviceLabels = [
  "service",
  "app",
  "application",
  "app_name",
  "name",
  "app_kubernetes_io_name",
  "container",
  "container_name",
  "k8s_container_name",
  "component",
  "workload",
  "job",
  "k8s_job_name",
];

/** Names under which agents send the level of a line, best first. */
const levelNames = [
  "level",
  "LEVEL",
  "Level",
  "log.level",
  "severity",
  "SEVERITY",
  "Severity",
  "SeverityText",
  "lvl",
  "LVL",
  "Lvl",
  "severity_text",
  "Severity_Text",
  "SEVERITY_TEXT",
];

const rateLimits = {
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
  per_stream_rate_limit: field.size(
    "3MB",
    "bytes a second that a stream may receive",
    "ingester.per-stream-rate-limit",
  ),
  per_stream_rate_limit_burst: field.size(
    "15MB",
    "bytes that a stream may receive at once",
    "ingester.per-stream-rate-limit-burst",
  ),
  max_streams_per_user: field.integer(
    0,
    "active streams of a tenant per ingester; 0: no limit",
    "ingester.max-streams-per-user",
  ),
  max_global_streams_per_user: field.integer(
    5000,
    "active streams of a tenant in the cluster; 0: no limit",
    "ingester.max-global-streams-per-user",
  ),
};

const entryRules = {
  reject_old_samples: field.toggle(
    true,
    "refuse entries that are too old",
    "validation.reject-old-samples",
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
    "validation.max-days-per-push",
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
  allow_structured_metadata: field.toggle(
    true,
    "accept structured metadata; needs schema v13",
    "validation.allow-structured-metadata",
  ),
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
};

const labelRules = {
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
  max_label_names_per_series: field.integer(
    15,
    "labels of a stream; service_name does not count",
    "validation.max-label-names-per-series",
  ),
  discover_service_name: field.list(
    serviceLabels,
    "labels whose value becomes service_name, best first; empty: no discovery",
    "validation.discover-service-name",
  ),
  discover_log_levels: field.toggle(
    true,
    "find the level of each line and keep it as detected_level",
    "validation.discover-log-levels",
  ),
  log_level_fields: field.list(
    levelNames,
    "labels, metadata and fields that hold the level, best first",
    "validation.log-level-fields",
  ),
  log_level_from_json_max_depth: field.integer(
    2,
    "how deep in a JSON line the level is looked for; 0: no limit",
    "validation.log-level-from-json-max-depth",
  ),
  enforced_labels: field.list(
    [],
    "labels that every stream must have",
    "validation.enforced-labels",
  ),
};

const blocking = {
  block_ingestion_until: field.time(
    "time until which pushes of the tenant are refused",
    "limits.block-ingestion-until",
  ),
  block_ingestion_status_code: field.integer(
    260,
    "status of a refused push; 200 drops it without a word",
    "limits.block-ingestion-status-code",
    { min: 200, max: 599 },
  ),
};

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

/** The limits that a push is held against. */
export const pushLimits = { ...rateLimits, ...entryRules, ...labelRules, ...blocking, ...otlp };
