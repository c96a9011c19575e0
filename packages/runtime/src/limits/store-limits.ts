import * as field from "../config/field.js";

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

const patterns = {
  pattern_ingester_tokenizable_json_fields_default: field.list(
    ["log", "message", "msg", "msg_", "_msg", "content"],
    "JSON fields whose text is searched for patterns",
    "limits.pattern-ingester-tokenizable-json-fields",
  ),
  pattern_ingester_tokenizable_json_fields_append: field.list(
    [],
    "further such fields",
    "limits.pattern-ingester-tokenizable-json-fields-append",
  ),
  pattern_ingester_tokenizable_json_fields_delete: field.list(
    [],
    "fields taken away from the list",
    "limits.pattern-ingester-tokenizable-json-fields-delete",
  ),
};

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

/** The limits of what is kept and of what works on it. */
export const storeLimits = {
  ...retention,
  ...sharding,
  ...ruler,
  ...patterns,
  ...overrides,
};
