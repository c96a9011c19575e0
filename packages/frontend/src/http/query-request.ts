import { invalidArgument } from "@skald/model";
import type { HttpRequest } from "@skald/transport";
import { parseTenants, type TenantOptions } from "@skald/transport/tenants";
import { encodingFlagHeaders } from "../encode/json.js";
import { checkTextSize } from "../limits/check-limits.js";
import { combineLimits, type QueryTenantLimits } from "../limits/limits.js";
import type { Asker } from "../query-context.js";
import type { EndpointRequest, QueryEndpoint } from "./endpoints.js";

/** A request to the query API as it goes to a thread, with its texts unread: plain data. */
export interface QueryRequest extends Asker, Pick<EndpointRequest, "variables" | "headers"> {
  readonly endpoint: QueryEndpoint;
  /** The parameters as in a query string. */
  readonly params: string;
}

export interface QueryRequestOptions extends TenantOptions {
  readonly multiTenantQueries: boolean;
  readonly limitsOf: (tenant: string) => QueryTenantLimits;
}

type WithHeaders = Pick<HttpRequest, "headers">;

const actorPathHeaders = ["x-service-actor-path", "x-loki-actor-path"];
const formHeaders = ["accept", ...encodingFlagHeaders];

/** Takes from an HTTP request what its endpoint needs. Throws unauthenticated or invalid_argument for its tenants. */
export function queryRequest(
  endpoint: QueryEndpoint,
  request: HttpRequest,
  options: QueryRequestOptions,
): QueryRequest {
  // A query is formatted for everybody.
  const tenants = endpoint === "format_query" ? [] : queryTenants(request, options);
  const limits = combineLimits((tenants.length === 0 ? [""] : tenants).map(options.limitsOf));
  checkTextSize(request.params, limits);
  const headers: Record<string, string> = {};
  for (const name of formHeaders) {
    const value = request.headers[name];
    if (value !== undefined) headers[name] = String(value);
  }
  return {
    endpoint,
    tenants,
    limits,
    actors: queryActors(request),
    queryTags: String(request.headers["x-query-tags"] ?? ""),
    variables: { ...request.variables },
    params: request.params.toString(),
    headers,
  };
}

/** The tenants that a request asks about. Throws unauthenticated or invalid_argument. */
export function queryTenants(
  { headers }: WithHeaders,
  options: Omit<QueryRequestOptions, "limitsOf">,
): string[] {
  const tenants = parseTenants(headers["x-scope-orgid"], options);
  if (tenants.length > 1 && !options.multiTenantQueries)
    throw invalidArgument("multiple org IDs present");
  return tenants;
}

/** The actors within the tenant, from the outside in: `a|b` of the header. */
function queryActors({ headers }: WithHeaders): string[] {
  const path = actorPathHeaders.map((name) => headers[name]).find((value) => value !== undefined);
  return String(path ?? "")
    .split("|")
    .filter((actor) => actor !== "");
}

/** Whether the client wants nothing that was kept, nor anything kept for others. */
export function refusesKept({ headers }: WithHeaders): boolean {
  const control = String(headers["cache-control"] ?? "").toLowerCase();
  return control.split(",").some((part) => ["no-cache", "no-store"].includes(part.trim()));
}
