import { backoffBlock, field, grpcClientBlock, ringBlock } from "@skald/runtime/config";

const ownDays = "compactors share out the days by their ring";

const flag = (name: string): string => `compactor.${name}`;

const ownObjects = { unused: "requests are objects of their own, kept where the data is" };
const byIndex = { unused: "the index of a day says what is deleted" };

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
  retention_table_timeout: field.duration(
    "0s",
    "time limit of a table; 0: none",
    flag("retention-table-timeout"),
    byIndex,
  ),
  retention_backoff_config: backoffBlock(
    {
      min: flag("retention-backoff-config.backoff-min-period"),
      max: flag("retention-backoff-config.backoff-max-period"),
      retries: flag("retention-backoff-config.backoff-retries"),
    },
    { min: "100ms", max: "10s", retries: 10, ...byIndex },
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
    "store of delete requests",
    flag("delete-request-store"),
    ownObjects,
  ),
  delete_request_store_key_prefix: field.text(
    "index/",
    "start of their keys",
    flag("delete-request-store.key-prefix"),
  ),
  delete_request_store_db_type: field.choice(
    "boltdb",
    ["boltdb", "sqlite"],
    "form of their file",
    flag("delete-request-store.db-type"),
    ownObjects,
  ),
  backup_delete_request_store_db_type: field.choice(
    "",
    ["", "boltdb", "sqlite"],
    "form of a second file",
    flag("delete-request-store.backup-db-type"),
    ownObjects,
  ),
  delete_batch_size: field.integer(70, "requests in a run", flag("delete-batch-size")),
  delete_request_cancel_period: field.duration(
    "24h",
    "time in which a request can be cancelled",
    flag("delete-request-cancel-period"),
  ),
  delete_max_interval: field.duration(
    "24h",
    "time range of the parts of a request",
    flag("delete-max-interval"),
  ),
  deletion_marker_object_store_prefix: field.text(
    "",
    "start of the keys of marks",
    flag("deletion-marker-object-store-prefix"),
    byIndex,
  ),
};

/** `compactor`: merging, retention and deletion. */
export const compactorConfig = field.section(
  "Merges, and deletes what is too old.",
  {
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
      "tables at a time",
      flag("max-compaction-parallelism"),
    ),
    upload_parallelism: field.integer(10, "uploads at a time", flag("upload-parallelism"), {
      unused: "what one merge makes is one object",
    }),
    tables_to_compact: field.integer(
      0,
      "newest tables that are looked at; 0: all",
      flag("tables-to-compact"),
    ),
    skip_latest_n_tables: field.integer(
      0,
      "newest tables left alone",
      flag("skip-latest-n-tables"),
    ),
    compactor_ring: ringBlock("compactor.ring", { use: "owners" }),
    horizontal_scaling_mode: field.choice(
      "disabled",
      ["disabled", "main", "worker"],
      "whether several work together",
      flag("horizontal-scaling-mode"),
      { unused: "the ring shares days out to any number of compactors" },
    ),
  },
  {
    ignored: {
      shared_store: "the object_store of the period is used",
      shared_store_key_prefix: "use delete_request_store_key_prefix instead",
      deletion_mode: "use limits_config.deletion_mode instead",
      allow_deletes: "use limits_config.deletion_mode instead",
      worker_config: ownDays,
      jobs_config: ownDays,
    },
  },
);

/** `compactor_grpc_client`: how the compactor is called. */
export const compactorClientConfig = grpcClientBlock("compactor.grpc-client");

/** `compactor`, as it is set. */
export type CompactorConfig = Readonly<field.Values<typeof compactorConfig>>;
