import type { z } from "zod";
import * as field from "../config/field.js";
import { defaultsOf } from "../config/print.js";
import { experiment, gone } from "../config/reasons.js";
import { readSchema } from "../config/schema.js";
import { pushLimits } from "./push-limits.js";
import { queryLimits } from "./query-limits.js";
import { storeLimits } from "./store-limits.js";

const remoteWrite = "use ruler_remote_write_config instead";

/** `limits_config`: what a tenant may do. Every key may stand in a tenant's overrides as well. */
export const limitsConfig = field.section(
  "Limits of a tenant; overrides may change them.",
  { ...pushLimits, ...queryLimits, ...storeLimits },
  {
    ignored: {
      allow_deletes: "use deletion_mode instead",
      enforce_metric_name: gone,
      unordered_writes: gone,
      ruler_evaluation_delay_duration: gone,
      ruler_enable_wal_replay: gone,
      enable_multi_variant_queries: gone,
      ruler_remote_write_url: remoteWrite,
      ruler_remote_write_timeout: remoteWrite,
      ruler_remote_write_headers: remoteWrite,
      ruler_remote_write_relabel_configs: remoteWrite,
      "ruler_remote_write_queue_*": remoteWrite,
      ruler_remote_write_sigv4_config: remoteWrite,
      "bloom_*": experiment,
      "dataobj_*": experiment,
      "debug_engine_*": experiment,
      engine_results_cache_time_bucket_interval: experiment,
    },
  },
);

/**
 * The limits of one tenant, spelled as in YAML. Durations and times are milliseconds, sizes are bytes; never changed in
 * place.
 */
export type Limits = Readonly<z.infer<typeof limitsConfig>>;

/** The limits of a tenant for which nothing is configured. */
export const defaultLimits = defaultsOf(readSchema(limitsConfig)) as Limits;
