import type { OtlpMapping } from "@skald/model";
import type { PushLimits } from "./settings/limits.js";

const known = new WeakMap<PushLimits["otlp_config"], OtlpMapping>();

/**
 * How a tenant's OTLP attributes are kept: the index labels of this process first, then the rules of the tenant. One object for
 * the same limits, because what is compiled from it is kept.
 */
export function otlpMappingOf(limits: PushLimits, indexLabels: readonly string[]): OtlpMapping {
  const { otlp_config: config } = limits;
  let mapping = known.get(config);
  if (mapping === undefined) {
    const { ignore_defaults, attributes_config } = config.resource_attributes;
    const defaults = [{ action: "index_label", attributes: indexLabels, regex: "" } as const];
    mapping = {
      resource: [...(ignore_defaults ? [] : defaults), ...attributes_config],
      scope: config.scope_attributes,
      log: config.log_attributes,
      severityTextAsLabel: config.severity_text_as_label,
    };
    known.set(config, mapping);
  }
  return mapping;
}
