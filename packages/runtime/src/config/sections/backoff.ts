import * as field from "../field.js";

/** How something is tried again. */
export function backoffBlock(
  flags: { min: string; max: string; retries: string },
  defaults: { min: string; max: string; retries: number; used?: boolean; unused?: string },
) {
  const forEver = { unused: "what fails is tried again until it succeeds" };
  const note = defaults.unused === undefined ? {} : { unused: defaults.unused };
  return field.section("How it is tried again.", {
    min_period: field.duration(defaults.min, "first pause", flags.min, note),
    max_period: field.duration(defaults.max, "longest pause", flags.max, note),
    max_retries: field.integer(
      defaults.retries,
      "tries; 0: for ever",
      flags.retries,
      defaults.used === true ? {} : { ...forEver, ...note },
    ),
  });
}
