import { type Labels, labelValue, makeLabels } from "@skald/model";

export const tenantLabelName = "__tenant_id__";
const shadowedName = `original_${tenantLabelName}`;

/** True for the labels that `withTenantLabel` may add. */
export function isTenantLabel(name: string): boolean {
  return name === tenantLabelName || name === shadowedName;
}

/** Adds `__tenant_id__`; a label of that name that the stream already has is kept as `original___tenant_id__`. */
export function withTenantLabel(labels: Labels, tenant: string): Labels {
  const pairs = labels.names.map((name, i) => [name, labels.values[i] as string] as const);
  const own = labelValue(labels, tenantLabelName);
  const shadowed = own === "" ? [] : [[shadowedName, own] as const];
  return makeLabels([...pairs, ...shadowed, [tenantLabelName, tenant] as const]);
}
