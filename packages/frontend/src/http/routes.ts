import type { PatternIngester } from "@skald/contracts";
import {
  type EndpointDocs,
  type HttpHandler,
  type HttpRequest,
  type HttpResponse,
  jsonTextResponse,
  type Route,
} from "@skald/transport/routes";
import { jsonText } from "../encode/pieces.js";
import { checkTextSize } from "../limits/check-limits.js";
import { formatAnswer, type PatternParams, type QueryEndpoint } from "./endpoints.js";
import { queryDocs } from "./query-docs.js";

/** Longest query that a process without a frontend formats: it parses on its main thread. */
const maxFormatBytes = 16 * 1024;

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
  ["explain", v1, "/explain"],
  ["format_query", v1, "/format_query"],
];

/** The query API as routes; `serve` answers its endpoints. */
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
  const format = (_endpoint: QueryEndpoint, { params }: HttpRequest) => {
    checkTextSize(params, { max_query_bytes: maxFormatBytes });
    return formatAnswer(params.get("query") ?? "");
  };
  return queryRoutes(format).filter(({ path }) => path.endsWith("/format_query"));
}

export interface PatternRouteDeps {
  /** Absent where no patterns are looked for. */
  readonly patterns?: Pick<PatternIngester, "patterns"> | undefined;
  /** The tenants that a request asks about. Throws unauthenticated or invalid_argument. */
  readonly tenantsOf: (request: HttpRequest) => string[];
  /** Parses the parameters of a request. */
  readonly parse: (request: HttpRequest) => Promise<PatternParams>;
}

const paths = ["/service/api/v1/patterns", "/loki/api/v1/patterns"];

const patternDocs: EndpointDocs = {
  group: "Explore",
  says: "Patterns of lines, with how many lines had each.",
  tenant: "many",
  params: [
    { name: "query", type: "selector", required: true, says: "The streams." },
    { name: "start", type: "time", fallback: "end - since", says: "Start of the range." },
    { name: "end", type: "time", fallback: "now", says: "End of the range." },
    {
      name: "since",
      type: "duration",
      fallback: "1h",
      says: "Length of the range without a start.",
    },
    {
      name: "step",
      type: "span",
      fallback: "range / 250",
      says: "Time between counts; 10 s at least.",
    },
  ],
  answers: { 200: "`{status, data: [{pattern, level, share, samples}]}`." },
  errors: { 404: "`pattern_ingester.enabled` is off" },
  example: { params: { query: '{app="shop"}' }, status: 200 },
};

/** The endpoint of patterns; 404 where none are looked for. */
export function patternRoutes(deps: PatternRouteDeps): Route[] {
  const handler = async (request: HttpRequest): Promise<HttpResponse> => {
    const tenants = deps.tenantsOf(request);
    if (deps.patterns === undefined) return { status: 404 };
    const params = await deps.parse(request);
    const data: object[] = [];
    for (const tenant of tenants) {
      const asked = { tenant, ...params };
      const { patterns, lines } = await deps.patterns.patterns(asked, request);
      for (const { pattern, level, samples } of patterns) {
        const hits = samples.reduce((sum, [, count]) => sum + count, 0);
        data.push({ pattern, level, share: Number((hits / lines).toFixed(4)), samples });
      }
    }
    return jsonTextResponse(200, `${jsonText({ status: "success", data })}\n`);
  };
  return paths.map((path) => ({ methods: ["GET", "POST"], path, handler, docs: patternDocs }));
}
