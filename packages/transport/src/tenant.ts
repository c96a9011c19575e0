import { isUtf8 } from "node:buffer";
import { invalidArgument, SkaldError } from "@skald/model";
import { currentSpan } from "@skald/runtime/tracing";

export interface TenantOptions {
  readonly authEnabled: boolean;
  /** Tenant of every request when auth is off. */
  readonly noAuthTenant: string;
}

/** The longest tenant id: directories and object keys contain it. */
export const maxTenantBytes = 768;
/** The most tenants of one request: every source is searched for each. */
export const maxTenants = 1000;

const legal = /^[a-zA-Z0-9!\-_.*'()]*$/;

/**
 * The tenants of a request, sorted and each once: `A|B` names two, `A|` one, `A:k=v` carries metadata that is dropped.
 * Throws unauthenticated (401) if there is no id, invalid_argument (400) if one is malformed.
 */
export function parseTenants(
  header: string | string[] | undefined,
  options: TenantOptions,
): string[] {
  const tenants = tenantsOf(header, options);
  currentSpan()?.set({ tenant: tenants.join("|") });
  return tenants;
}

function tenantsOf(header: string | string[] | undefined, options: TenantOptions): string[] {
  if (!options.authEnabled) return [options.noAuthTenant];
  const text = Array.isArray(header) ? header[0] : header;
  if (text === undefined || text === "") throw noTenant();
  const ids = new Set<string>();
  for (const part of text.split("|")) {
    if (part === "") continue;
    const id = part.split(":", 1)[0] as string;
    checkTenant(id);
    ids.add(id);
    if (ids.size > maxTenants) throw invalidArgument(`more than ${maxTenants} org IDs present`);
  }
  if (ids.size === 0) throw noTenant();
  return [...ids].sort();
}

/** The tenant of a request that must name one; several give 400 `multiple org IDs present`. */
export function parseTenant(header: string | string[] | undefined, options: TenantOptions): string {
  const tenants = parseTenants(header, options);
  const hasEmpty = options.authEnabled && /^\||\|\||\|$/.test(String(header));
  if (tenants.length > 1 || hasEmpty) throw invalidArgument("multiple org IDs present");
  return tenants[0] as string;
}

/** Throws what is wrong with the id of a tenant. */
export function checkTenant(id: string): void {
  if (id === "") throw noTenant();
  if (id === "." || id === "..") throw invalidArgument("tenant ID is '.' or '..'");
  if (id.length > maxTenantBytes) {
    throw invalidArgument(
      `tenant ID is too long: max ${maxTenantBytes} characters, it has ${id.length}`,
    );
  }
  if (legal.test(id)) return;
  const shown = textOfHeader(id);
  const bad = [...shown].find((char) => !legal.test(char)) ?? "";
  throw invalidArgument(`tenant ID '${shown}' contains unsupported character '${bad}'`);
}

function noTenant(): SkaldError {
  return new SkaldError("unauthenticated", "no org id");
}

/** Node gives one character per byte of a header; most clients send UTF-8. */
function textOfHeader(value: string): string {
  const bytes = Buffer.from(value, "latin1");
  return isUtf8(bytes) ? bytes.toString() : value;
}
