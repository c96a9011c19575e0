import type { PatternIngester } from "@skald/contracts";
import {
  type EndpointDocs,
  type HttpRequest,
  type HttpResponse,
  jsonTextResponse,
  type Route,
} from "@skald/transport";
import { jsonText } from "../encode/pieces.js";
import type { PatternParams } from "./endpoints.js";

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
