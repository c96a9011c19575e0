import { compileMatcher, type Matcher } from "@skald/model";
import { tenantLabelName } from "@skald/scan";

/** Selectors of one tenant: the matchers without those on `__tenant_id__`, which have chosen the tenant. */
export interface TenantSelector {
  readonly tenant: string;
  readonly matchers: readonly Matcher[];
  /** Set when streams shall carry the label: in queries over several tenants. */
  readonly tenantLabel?: string;
}

/** Splits a selector over the tenants of a request; with one tenant `__tenant_id__` is a label like any other. */
export function selectTenants(
  tenants: readonly string[],
  matchers: readonly Matcher[],
): TenantSelector[] {
  if (tenants.length === 1) return [{ tenant: tenants[0] as string, matchers }];
  const own = matchers.filter((matcher) => matcher.name !== tenantLabelName);
  const tests = matchers.filter((matcher) => matcher.name === tenantLabelName).map(compileMatcher);
  return tenants
    .filter((tenant) => tests.every((test) => test(tenant)))
    .map((tenant) => ({ tenant, matchers: own, tenantLabel: tenant }));
}
