import { field, ringBlock, tokenFields } from "@skald/runtime/config";

const flag = (name: string): string => `compactor.${name}`;

const retention = {
  retention_enabled: field.toggle(false, "delete what is too old", flag("retention-enabled")),
  retention_delete_delay: field.duration(
    "2h",
    "time between mark and delete, also of segments that were merged",
    flag("retention-delete-delay"),
  ),
  retention_delete_worker_count: field.integer(
    150,
    "deletes at a time",
    flag("retention-delete-worker-count"),
    { min: 1 },
  ),
  apply_retention_interval: field.duration(
    "0s",
    "pause between runs; 0: compaction_interval",
    flag("apply-retention-interval"),
  ),
};

const deletes = {
  delete_request_store: field.text(
    "",
    "must be set where retention_enabled is; the requests are kept with the data, whatever it says",
    flag("delete-request-store"),
  ),
  delete_request_store_key_prefix: field.text(
    "index/",
    "start of their keys",
    flag("delete-request-store.key-prefix"),
  ),
  delete_batch_size: field.integer(70, "requests in a run", flag("delete-batch-size")),
  delete_request_cancel_period: field.duration(
    "24h",
    "time in which a request can be cancelled",
    flag("delete-request-cancel-period"),
  ),
  delete_request_redact_period: field.duration(
    "24h",
    "time after which the text of a processed request is taken out, because it may tell what was deleted",
    flag("delete-request-redact-period"),
  ),
  delete_max_interval: field.duration(
    "24h",
    "time range of the parts of a request",
    flag("delete-max-interval"),
  ),
};

/** `compactor`: merging, retention and deletion. */
export const compactorConfig = field.section("Merges, and deletes what is too old.", {
  working_directory: field.text(
    "/var/loki/compactor",
    "directory; default path_prefix/compactor",
    flag("working-directory"),
  ),
  compaction_interval: field.duration("10m", "pause between runs", flag("compaction-interval")),
  ...retention,
  ...deletes,
  max_compaction_parallelism: field.integer(
    1,
    "tables, and merges of them, at a time, each on a thread",
    flag("max-compaction-parallelism"),
    { min: 1 },
  ),
  tables_to_compact: field.integer(
    0,
    "newest tables that are looked at; 0: all",
    flag("tables-to-compact"),
  ),
  field_columns_percent: field.float(
    1.2,
    "bytes that columns of fields may take, in percent of the lines; 0: none",
    flag("field-columns-percent"),
    { min: 0, max: 100 },
  ),
  skip_latest_n_tables: field.integer(0, "newest tables left alone", flag("skip-latest-n-tables")),
  compactor_ring: ringBlock("compactor.ring", tokenFields("compactor.ring")),
});

/** `compactor`, as it is set. */
export type CompactorConfig = Readonly<field.Values<typeof compactorConfig>>;
