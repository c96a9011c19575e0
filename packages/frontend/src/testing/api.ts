import { expect } from "@jest/globals";
import type { QueryByteLimits } from "@skald/contracts";
import { querierOf } from "@skald/contracts/testing/fakes";
import { type LogResult, linesOf, type Plan, type QueryResult } from "@skald/logql";
import { emptyReadStats, labelsFromObject, type QueryStats } from "@skald/model";
import { defaultLimits } from "@skald/runtime/config";
import type { HttpRequest, HttpResponse } from "@skald/transport";
import { Frontend } from "../frontend.js";
import { type Endpoint, type QueryEndpoint, queryEndpoints } from "../http/endpoints.js";
import { queryRequest } from "../http/query-request.js";
import { queryRoutes } from "../http/routes.js";
import type { QueryTenantLimits } from "../limits/limits.js";
import type { QueryContext } from "../query-context.js";

export const limits: QueryTenantLimits = { ...defaultLimits, query_timeout: 1000 };
export const stats: QueryStats = {
  ingester: { ...emptyReadStats(), headBytes: 10, headLines: 1 },
  store: { ...emptyReadStats(), decompressedBytes: 20, decompressedLines: 2 },
  ingestersReached: 1,
  streams: 1,
  execSeconds: 0.5,
  queueSeconds: 0,
  entriesReturned: 1,
  shards: 1,
};

const app = labelsFromObject({ app: "a" });
const none = labelsFromObject({});
const metadata = labelsFromObject({ trace: "1" });
const line = new TextEncoder().encode('<b> "x"');
export const logs: LogResult = {
  kind: "streams",
  rowCount: 1,
  timestamps: BigInt64Array.of(1_795_000_000_000_000_001n),
  labelSet: Uint32Array.of(0),
  lines: linesOf({ bytes: line, offsets: Uint32Array.of(0, line.length) }),
  labels: [
    {
      labels: labelsFromObject({ app: "a", trace: "1" }),
      categories: { stream: app, structuredMetadata: metadata, parsed: none },
    },
  ],
  warnings: [],
};
export const points = { startNs: 1_795_000_000_000_000_000n, stepNs: 500_000_000n, count: 3 };
export const matrix: QueryResult = {
  kind: "matrix",
  points,
  series: [{ labels: app, at: Uint32Array.of(0, 1), values: Float64Array.of(1, Number.NaN) }],
  warnings: [],
};
export const vector: QueryResult = {
  kind: "vector",
  atNs: points.startNs,
  samples: [{ labels: app, value: 1e21 }],
  warnings: [],
};

/** `{app="a", env="x"}` and `{app="b"}`. */
const streams = {
  hashes: Uint32Array.of(1, 1, 2, 2),
  starts: Uint32Array.of(0, 2, 3),
  pairs: Uint32Array.of(0, 1, 2),
  names: ["app", "env"],
  pairNames: Uint32Array.of(0, 1, 0),
  values: { bytes: Buffer.from("axb"), offsets: Uint32Array.of(0, 1, 2, 3) },
  valueHashes: new Uint32Array(6),
};

export function makeApi(
  result: QueryResult | LogResult,
  changed: Partial<QueryTenantLimits> = {},
  alignToStep = false,
) {
  const plans: Plan[] = [];
  const asked: unknown[] = [];
  const bounds: QueryByteLimits[] = [];
  const querier = querierOf({
    query: async ({ plan, limits: bound }) => {
      plans.push(plan);
      bounds.push(bound);
      return { result, stats };
    },
    streams: async (request) => {
      asked.push(request);
      return request.tenants.map((tenant) => ({ tenant, streams: [streams] }));
    },
    labels: async (request) => {
      asked.push(request);
      const texts = { app: ["a", "b"], env: ["x"], none: [] }[request.label ?? "none"];
      return request.tenants.map((tenant) => ({
        tenant,
        texts: request.label === undefined ? ["app", "env"] : (texts ?? []),
      }));
    },
  });
  const frontend = new Frontend({ clock: { nowMs: () => 1_795_000_000_000 }, alignToStep });
  const serve = serverOf(frontend, { limits: { ...limits, ...changed }, querier });
  const routes = queryRoutes(serve);
  const call = async (
    path: string,
    params: Record<string, string> | [string, string][],
    headers: Record<string, string> = {},
  ) => {
    const route = routes.find((candidate) => match(candidate.path, path) !== undefined);
    if (route === undefined) throw new Error(`no route for ${path}`);
    const request: HttpRequest = {
      method: "GET",
      path,
      variables: match(route.path, path) ?? {},
      headers: { "x-scope-orgid": "t", ...headers },
      params: new URLSearchParams(params),
      body: new Uint8Array(0),
      signal: new AbortController().signal,
    };
    return route.handler(request);
  };
  return { call, plans, bounds, asked };
}

/** Answers requests on one thread. Planned requests are cloned, as they are on their way to another one. */
export function serverOf(
  frontend: Frontend,
  context: Partial<QueryContext>,
): (endpoint: QueryEndpoint, request: HttpRequest) => Promise<HttpResponse> {
  const endpoints = queryEndpoints(frontend, { parquetAnswers: true });
  return async (name, request) => {
    const asked = contextOf({ ...context, signal: request.signal });
    const tenancy = { authEnabled: true, noAuthTenant: "fake", multiTenantQueries: true };
    const { params: _, ...plain } = queryRequest(name, request, {
      ...{ ...tenancy, limitsOf: () => asked.limits },
    });
    const { params } = request;
    const endpoint: Endpoint<unknown> = endpoints[name];
    const planned = structuredClone(endpoint.plan({ ...plain, params }, plain));
    const given = { ...asked, ...plain };
    return (await endpoint.answer(planned, { ...plain, params }, given)) as HttpResponse;
  };
}

/** What a request of tenant t brings, with a querier that nobody asks if none is given. */
export function contextOf(given: Partial<QueryContext> = {}): QueryContext {
  const { signal } = new AbortController();
  return { tenants: ["t"], limits, querier: querierOf({}), signal, ...given };
}

function match(pattern: string, path: string): Record<string, string> | undefined {
  const names = [...pattern.matchAll(/:(\w+)/g)].map((found) => found[1] as string);
  const found = new RegExp(`^${pattern.replace(/:\w+/g, "([^/]+)")}$`).exec(path);
  return found === null
    ? undefined
    : Object.fromEntries(names.map((name, i) => [name, found[i + 1] as string]));
}

export const textOf = ({ body }: HttpResponse) =>
  typeof body === "string" ? body : Buffer.concat([...(body as Iterable<Uint8Array>)]).toString();
export const bodyOf = (response: HttpResponse) => JSON.parse(textOf(response));
export const error = (status: number, text: string): unknown =>
  expect.objectContaining({ status, message: expect.stringContaining(text) });
