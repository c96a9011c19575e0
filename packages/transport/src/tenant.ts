import { invalidArgument, SkaldError } from "@skald/model";

export interface TenantOptions {
  readonly authEnabled: boolean;
  /** Tenant of every request when auth is off. */
  readonly noAuthTenant: string;
}

/** Longest `X-Scope-OrgID` header; the whole request head is bounded by the same figure. */
export const maxTenantHeaderBytes = 1024 * 1024;

const legal = /^[a-zA-Z0-9!\-_.*'()]*$/;

/**
 * The tenants of a request, sorted and each once: `A|B` names two, `A:k=v` carries metadata that is dropped.
 * Throws unauthenticated (401) without a header, invalid_argument (400) for a bad id.
 */
export function parseTenants(
  header: string | string[] | undefined,
  options: TenantOptions,
): string[] {
  if (!options.authEnabled) return [options.noAuthTenant];
  const text = Array.isArray(header) ? header[0] : header;
  if (text === undefined || text === "") throw new SkaldError("unauthenticated", "no org id");
  const ids = text.split("|").map((part) => part.split(":", 1)[0] as string);
  for (const id of ids) checkTenant(id);
  return [...new Set(ids)].sort();
}

/** The one tenant of a request to an endpoint that serves one; several give 400 `multiple org IDs present`. */
export function parseTenant(header: string | string[] | undefined, options: TenantOptions): string {
  const tenants = parseTenants(header, options);
  if (tenants.length > 1) throw invalidArgument("multiple org IDs present");
  return tenants[0] as string;
}

function checkTenant(id: string): void {
  if (id === "") throw new SkaldError("unauthenticated", "no org id");
  if (id === "." || id === "..") throw invalidArgument("tenant ID is '.' or '..'");
  if (legal.test(id)) return;
  const bad = [...id].find((char) => !legal.test(char)) ?? "";
  throw invalidArgument(`tenant ID '${id}' contains unsupported character '${bad}'`);
}
