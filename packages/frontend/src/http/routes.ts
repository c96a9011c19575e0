import type { HttpHandler, HttpRequest, Route } from "@skald/transport";
import { formatAnswer, type QueryEndpoint } from "./endpoints.js";
import { queryDocs } from "./query-docs.js";

const readMethods = ["GET", "POST"];
const v1 = ["/service/api/v1", "/loki/api/v1"];
const legacy = ["/api/legacy", "/api/prom"];

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
  return queryRoutes((_endpoint, { params }) => formatAnswer(params.get("query") ?? "")).filter(
    ({ path }) => path.endsWith("/format_query"),
  );
}
