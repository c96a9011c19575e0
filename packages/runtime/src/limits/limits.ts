import type { z } from "zod";
import * as field from "../config/field.js";
import { defaultsOf } from "../config/print.js";
import { readSchema } from "../config/schema.js";
import { pushLimits } from "./push-limits.js";
import { queryLimits } from "./query-limits.js";
import { storeLimits } from "./store-limits.js";

/** `limits_config`: what a tenant may do. Every key may stand in a tenant's overrides as well. */
export const limitsConfig = field.section("Limits of a tenant; overrides may change them.", {
  ...pushLimits,
  ...queryLimits,
  ...storeLimits,
});

/**
 * The limits of one tenant, spelled as in YAML. Durations and times are milliseconds, sizes are bytes; never changed in
 * place.
 */
export type Limits = Readonly<z.infer<typeof limitsConfig>>;

/** The limits of a tenant for which nothing is configured. */
export const defaultLimits = defaultsOf(readSchema(limitsConfig)) as Limits;
