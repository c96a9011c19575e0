import { encodeLogRows, type QueryAnswer } from "@skald/contracts";
import { formatQuery as formatText, parseQuery } from "@skald/logql";
import { invalidArgument, nsPerSecond, SkaldError, type TimeRange } from "@skald/model";
import {
  type HttpHandler,
  type HttpRequest,
  type HttpResponse,
  jsonResponse,
  jsonTextResponse,
  parseTenants,
  type Route,
  type TenantOptions,
} from "@skald/transport";
import { encodeList, encodeQueryResult, encodeSeries } from "../encode/json.js";
import { encodeLegacyStreams } from "../encode/legacy.js";
import { encodeParquet, parquetType } from "../encode/parquet.js";
import type { Frontend } from "../frontend.js";
import { tenantLabel } from "../lists.js";
import {
  parseBounds,
  parseFilteredQuery,
  parseInstantParams,
  parseRangeParams,
} from "../params/params.js";
import { type ExploreEndpoint, exploreHandlers } from "./explore-handlers.js";
import { wantsCategories } from "./headers.js";
import { queryDocs } from "./query-docs.js";

export interface QueryRouteOptions extends TenantOptions {
  readonly multiTenantQueries: boolean;
  /** Move both ends of a metric query down to multiples of its step. */
  readonly alignToStep?: boolean;
  /** Answer in Parquet to who accepts only that; else the header is not looked at. */
  readonly parquetAnswers: boolean;
}

const readMethods = ["GET", "POST"];
const labelsSinceNs = 6n * 3600n * nsPerSecond;
const seriesSinceNs = 3600n * nsPerSecond;

const v1 = ["/service/api/v1", "/loki/api/v1"];
const legacy = ["/api/legacy", "/api/prom"];

export type QueryEndpoint =
  | ExploreEndpoint
  | "query_range"
  | "query"
  | "labels"
  | "label_values"
  | "series"
  | "legacy_query"
  | "format_query"
  | "tail_history";

/** The paths of the query API, under the published and the reference's names. */
const queryPaths: readonly (readonly [keyof typeof queryDocs, readonly string[], string])[] = [
  ["query", v1, "/query"],
  ["query_range", v1, "/query_range"],
  ["labels", v1, "/labels"],
  ["labels", [...v1, ...legacy], "/label"],
  ["label_values", [...v1, ...legacy], "/label/:name/values"],
  ["series", [...v1, ...legacy], "/series"],
  ["index_stats", v1, "/index/stats"],
  ["index_shards", v1, "/index/shards"],
  ["index_volume", v1, "/index/volume"],
  ["index_volume_range", v1, "/index/volume_range"],
  ["detected_labels", v1, "/detected_labels"],
  ["detected_fields", v1, "/detected_fields"],
  ["detected_field_values", v1, "/detected_field/:name/values"],
  ["legacy_query", legacy, "/query"],
  ["format_query", v1, "/format_query"],
];

/** The query API as routes that are served by whoever knows the endpoints. */
export function queryRoutes(
  serve: (endpoint: QueryEndpoint, request: HttpRequest) => ReturnType<HttpHandler>,
): Route[] {
  return queryPaths.flatMap(([endpoint, prefixes, path]) =>
    prefixes.map((prefix) => ({
      methods: readMethods,
      path: prefix + path,
      handler: (request) => serve(endpoint, request),
      docs: queryDocs[endpoint],
    })),
  );
}

/** The one endpoint that needs nothing but the language: every process answers it. */
export function formatRoutes(): Route[] {
  const language = { format: (query: string) => formatText(parseQuery(query)) };
  return queryRoutes((_endpoint, { params }) =>
    Promise.resolve(formatQuery(language, params.get("query") ?? "")),
  ).filter(({ path }) => path.endsWith("/format_query"));
}

/** What answers the endpoints of the query API. */
export function queryHandlers(
  frontend: Frontend,
  options: QueryRouteOptions,
): Readonly<Record<QueryEndpoint, HttpHandler>> {
  const tenantsOf = (request: HttpRequest) => queryTenants(request, options);
  const range = (request: HttpRequest, sinceNs: bigint): TimeRange =>
    parseRange(request.params, frontend.nowNs(), sinceNs);
  const param = (request: HttpRequest, name: string) => request.params.get(name) ?? "";

  const answer = (request: HttpRequest, { result, stats }: QueryAnswer): HttpResponse => {
    if (options.parquetAnswers && request.headers.accept === parquetType) {
      return { status: 200, headers: { "content-type": parquetType }, body: encodeParquet(result) };
    }
    const categorize = wantsCategories(request);
    return jsonTextResponse(200, encodeQueryResult(result, stats, { categorize }));
  };
  const queryRange = async (request: HttpRequest): Promise<HttpResponse> => {
    const tenants = tenantsOf(request);
    const params = parseRangeParams(request.params, frontend.nowNs());
    return answer(request, await frontend.queryRange(tenants, params, request.signal));
  };
  const query = async (request: HttpRequest): Promise<HttpResponse> => {
    const tenants = tenantsOf(request);
    const params = parseInstantParams(request.params, frontend.nowNs());
    return answer(request, await frontend.queryInstant(tenants, params, request.signal));
  };
  const labels = async (request: HttpRequest): Promise<HttpResponse> => {
    const span = range(request, labelsSinceNs);
    return success(
      await frontend.lists.labelNames(
        tenantsOf(request),
        param(request, "query"),
        span,
        request.signal,
      ),
    );
  };
  const labelValues = async (request: HttpRequest): Promise<HttpResponse> => {
    const span = range(request, labelsSinceNs);
    const name = request.variables.name as string;
    const query = param(request, "query");
    return success(
      await frontend.lists.labelValues(tenantsOf(request), name, query, span, request.signal),
    );
  };
  const series = async (request: HttpRequest): Promise<HttpResponse> => {
    const tenants = tenantsOf(request);
    const matches = [...request.params.getAll("match[]"), ...request.params.getAll("match")];
    if (matches.length === 0) throw invalidArgument("at least one match[] is required");
    const span = range(request, seriesSinceNs);
    const found = await frontend.lists.series(tenants, matches, span, request.signal);
    return jsonTextResponse(200, encodeSeries(found, tenants.length > 1 ? tenantLabel : undefined));
  };
  const legacyQuery = async (request: HttpRequest): Promise<HttpResponse> => {
    const tenants = tenantsOf(request);
    const query = parseFilteredQuery(request.params);
    const params = { ...parseRangeParams(request.params, frontend.nowNs()), query };
    const { result, stats } = await frontend.queryRange(tenants, params, request.signal);
    if (result.kind !== "streams") {
      throw invalidArgument(
        "rpc error: code = Code(400) desc = legacy endpoints only support streams result type",
      );
    }
    return jsonTextResponse(200, encodeLegacyStreams(result, stats));
  };
  // No path has it: whoever serves tails asks for what came before.
  const tailHistory = async (request: HttpRequest): Promise<HttpResponse> => {
    const params = parseRangeParams(request.params, frontend.nowNs());
    const { result } = await frontend.queryRange(tenantsOf(request), params, request.signal);
    if (result.kind !== "streams") throw invalidArgument("only log selector is supported");
    return { status: 200, body: encodeLogRows(result) };
  };

  return {
    ...exploreHandlers(frontend, tenantsOf),
    query_range: queryRange,
    query,
    labels,
    label_values: labelValues,
    series,
    legacy_query: legacyQuery,
    tail_history: tailHistory,
    format_query: (request) => formatQuery(frontend, param(request, "query")),
  };
}

/** The tenants that a request asks about. Throws unauthenticated or invalid_argument. */
export function queryTenants({ headers }: HttpRequest, options: QueryRouteOptions): string[] {
  const tenants = parseTenants(headers["x-scope-orgid"], options);
  if (tenants.length > 1 && !options.multiTenantQueries)
    throw invalidArgument("multiple org IDs present");
  return tenants;
}

/** What the client says about its query. */
export function queryTags({ headers }: Pick<HttpRequest, "headers">): string {
  return String(headers["x-query-tags"] ?? "");
}

function parseRange(params: URLSearchParams, nowNs: bigint, sinceNs: bigint): TimeRange {
  const { startNs, endNs } = parseBounds(params, nowNs, sinceNs);
  // Clients mean the last nanosecond too.
  return { fromNs: startNs, toNs: endNs + 1n };
}

function formatQuery(frontend: Pick<Frontend, "format">, query: string): HttpResponse {
  try {
    return jsonResponse(200, { status: "success", data: frontend.format(query) });
  } catch (error) {
    if (!(error instanceof SkaldError)) throw error;
    return jsonResponse(error.status, { status: "invalid-query", error: error.message });
  }
}

function success(data: readonly string[]): HttpResponse {
  return jsonTextResponse(200, encodeList(data));
}
