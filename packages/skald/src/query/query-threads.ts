import {
  combineLimits,
  type QueryEndpoint,
  type QueryRouteOptions,
  type QueryTenantLimits,
  queryActors,
  queryTenants,
} from "@skald/frontend";
import type { HostFunction, WorkerPool } from "@skald/runtime";
import { urgentBytes } from "@skald/scan";
import type { HttpRequest, HttpResponse } from "@skald/transport";
import type { QueryJob, QueryReply } from "./query-job.js";

/** Headers that endpoints of the query API look at. */
const wantedHeaders = [
  "accept",
  "x-scope-orgid",
  "x-service-actor-path",
  "x-loki-actor-path",
  "x-loki-response-encoding-flags",
  "x-service-response-encoding-flags",
];

export interface QueryThreadsOptions {
  readonly pool: Pick<WorkerPool, "run">;
  readonly host: Readonly<Record<string, HostFunction>>;
  readonly limitsOf: (tenant: string) => QueryTenantLimits;
  readonly routes: QueryRouteOptions;
  /** Scans that one query runs at the same time. */
  readonly threads: number;
}

/**
 * Passes requests to the query threads. Each goes first to the thread that serves many small queries at a time; one that
 * turns out to be more than that goes to a thread of its own, in its tenant's turn.
 */
export class QueryThreads {
  readonly #options: QueryThreadsOptions;

  constructor(options: QueryThreadsOptions) {
    this.#options = options;
  }

  async serve(endpoint: QueryEndpoint, request: HttpRequest): Promise<HttpResponse> {
    const { limitsOf, routes, threads } = this.#options;
    // A query is formatted for whoever asks.
    const tenants = endpoint === "format_query" ? [] : queryTenants(request, routes);
    const job: QueryJob = {
      endpoint,
      method: request.method,
      path: request.path,
      variables: { ...request.variables },
      headers: pickHeaders(request),
      params: request.params.toString(),
      limits: combineLimits(tenants.map(limitsOf)),
      options: routes,
      threads,
    };
    const share = { tenant: tenants.join("|"), actors: queryActors(request) };
    const small = await this.#run({ ...job, maxCost: urgentBytes }, { ...share, cost: 0 }, request);
    if (small.kind === "answer") return small;
    const large = await this.#run(job, { ...share, cost: small.cost }, request);
    if (large.kind === "answer") return large;
    throw new Error("a query without a bound was too heavy");
  }

  #run(
    job: QueryJob,
    share: { tenant: string; actors: readonly string[]; cost: number },
    { signal }: HttpRequest,
  ): Promise<QueryReply> {
    const { pool, host } = this.#options;
    const lane = job.maxCost === undefined ? "query" : "urgent";
    return pool.run<QueryReply>("query", job, { lane, share, host, signal });
  }
}

function pickHeaders({ headers }: HttpRequest): Record<string, string> {
  const picked: Record<string, string> = {};
  for (const name of wantedHeaders) {
    const value = headers[name];
    if (value !== undefined) picked[name] = String(value);
  }
  return picked;
}
