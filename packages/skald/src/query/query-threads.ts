import type { Querier } from "@skald/contracts";
import {
  combineLimits,
  Frontend,
  type QueryEndpoint,
  type QueryFacts,
  type QueryRouteOptions,
  type QueryTenantLimits,
  queryActors,
  queryHandlers,
  queryTags,
  queryTenants,
  type ResultStores,
  refusesKept,
} from "@skald/frontend";
import { systemClock } from "@skald/model";
import { QueryTooHeavy } from "@skald/querier";
import type { HostFunction, JobShare, MemoryBudget, WorkerPool } from "@skald/runtime";
import { urgentBytes } from "@skald/scan";
import type { HttpRequest, HttpResponse } from "@skald/transport";
import { type KeptKinds, kindsOf, storesHost } from "./kept-results.js";
import { PieceChannel } from "./piece-channel.js";
import { type AnswerHead, deletesOfAll, type QueryJob, type QueryReply } from "./query-job.js";

/** Headers that endpoints of the query API look at. */
const wantedHeaders = [
  "accept",
  "x-scope-orgid",
  "x-service-actor-path",
  "x-loki-actor-path",
  "x-query-tags",
  "cache-control",
  "x-loki-response-encoding-flags",
  "x-service-response-encoding-flags",
];

/** Bytes of kept answers that are put together where requests come in. */
const maxKeptHere = 64 * 1024;

export interface QueryThreadsOptions {
  readonly pool: Pick<WorkerPool, "run" | "resume">;
  /**
   * Answers what costs next to nothing; throws QueryTooHeavy for the rest. Absent where `host` has `schedule`, by which
   * queriers of other processes answer.
   */
  readonly querier?: Querier;
  /** What all queries may hold together. */
  readonly memory: MemoryBudget;
  readonly host: Readonly<Record<string, HostFunction>>;
  readonly limitsOf: (tenant: string) => QueryTenantLimits;
  /** Whether rows of a tenant were deleted that may still be stored. */
  readonly hidesRows: (tenant: string) => boolean;
  /** Changes with every delete request of a tenant, and with what becomes of it. */
  readonly deletesOf?: (tenant: string) => string;
  readonly routes: QueryRouteOptions;
  /** Scans that one query runs at the same time. */
  readonly threads: number;
  /** Where answers are kept; nowhere if not given. */
  readonly stores?: ResultStores;
  /** Told of each query that was run, wherever it was. */
  readonly onQuery?: (facts: QueryFacts) => void;
}

/**
 * Answers queries where they hold nobody up. One that reads little and has little to evaluate is answered here; one with
 * more to evaluate by the thread that serves many such queries at a time; one that reads much by a thread of its own, in
 * its tenant's turn.
 */
export class QueryThreads {
  readonly #options: QueryThreadsOptions;
  readonly #host: Readonly<Record<string, HostFunction>>;
  readonly #kept: KeptKinds;

  constructor(options: QueryThreadsOptions) {
    const { host, stores = {} } = options;
    this.#options = options;
    this.#host = { ...host, ...storesHost(stores) };
    this.#kept = kindsOf(stores);
  }

  async serve(endpoint: QueryEndpoint, request: HttpRequest): Promise<HttpResponse> {
    const { hidesRows, limitsOf, routes, threads } = this.#options;
    // A query is formatted for whoever asks.
    const tenants = endpoint === "format_query" ? [] : queryTenants(request, routes);
    const limits = combineLimits(tenants.map(limitsOf));
    const actors = queryActors(request);
    // What is to be done with the lines of a sample takes longer than to find them.
    const { querier } = this.#options;
    const here =
      querier === undefined || endpoint.startsWith("detected_field")
        ? 0
        : await this.#serveHere(endpoint, request, { querier, limits, actors });
    if (typeof here !== "number") return here;
    const job: Omit<QueryJob, "memory"> = {
      endpoint,
      method: request.method,
      path: request.path,
      variables: { ...request.variables },
      headers: pickHeaders(request),
      params: request.params.toString(),
      limits,
      options: routes,
      hidesRows: tenants.some(hidesRows),
      deletes: deletesOfAll(tenants, this.#options.deletesOf),
      threads,
      sentNs: process.hrtime.bigint(),
      kept: refusesKept(request) ? {} : this.#kept,
    };
    const share = { tenant: tenants.join("|"), actors };
    if (querier === undefined) {
      // It waits for others most of the time, as many do at the same time.
      const answer = await this.#run({ ...job, isScheduled: true }, { ...share, cost: 0 }, request);
      if (typeof answer !== "number") return answer;
    }
    let cost = here;
    if (cost <= urgentBytes) {
      const small = { ...job, maxCost: urgentBytes };
      const answer = await this.#run(small, { ...share, cost: 0 }, request);
      if (typeof answer !== "number") return answer;
      cost = answer;
    }
    const large = await this.#run(job, { ...share, cost }, request);
    if (typeof large !== "number") return large;
    throw new Error("a query without a bound was too heavy");
  }

  /** The answer of a query that costs next to nothing beside its scans, or what it would cost. */
  async #serveHere(
    endpoint: QueryEndpoint,
    request: HttpRequest,
    {
      querier,
      limits,
      actors,
    }: {
      querier: Querier;
      limits: QueryTenantLimits;
      actors: readonly string[];
    },
  ): Promise<HttpResponse | number> {
    const { routes, stores = {} } = this.#options;
    const frontend = new Frontend({
      querier,
      results: refusesKept(request)
        ? undefined
        : {
            stores,
            changes: querier,
            maxBytes: maxKeptHere,
            refuse: (bytes) => new QueryTooHeavy(bytes),
          },
      limitsOf: () => limits,
      clock: systemClock,
      actors,
      queryTags: queryTags(request),
      alignToStep: routes.alignToStep,
      onQuery: this.#options.onQuery,
    });
    try {
      return await queryHandlers(frontend, routes)[endpoint](request);
    } catch (error) {
      if (error instanceof QueryTooHeavy) return error.cost;
      throw error;
    }
  }

  /** The answer, as soon as it begins, or what the query would cost. */
  #run(
    request: Omit<QueryJob, "memory">,
    share: JobShare,
    { signal }: HttpRequest,
  ): Promise<HttpResponse | number> {
    const { pool, memory, onQuery } = this.#options;
    const mayWait = request.maxCost === undefined;
    const job: QueryJob = { ...request, memory: memory.open({ mayWait }) };
    const isSmall = job.maxCost !== undefined || job.isScheduled === true;
    const lane = isSmall ? "urgent" : "query";
    return new Promise((resolve, reject) => {
      const pieces = new PieceChannel();
      const writing = {
        queried: (facts: unknown) => {
          onQuery?.(facts as QueryFacts);
          return { value: undefined };
        },
        head: (head: AnswerHead) => {
          resolve({ ...head, body: pieces });
          return { value: undefined };
        },
        write: async (piece: Uint8Array) => {
          await pieces.put(piece);
          return { value: undefined };
        },
      };
      const options = { lane, share, host: { ...this.#host, ...writing }, signal } as const;
      const reply = pool.run<QueryReply>("query", job, options);
      const ended = reply.finally(() => {
        memory.close(job.memory);
        // Others may have waited for it.
        pool.resume();
      });
      ended.then(
        (reply) => {
          if (reply.kind === "written") pieces.end();
          else resolve(reply.kind === "too_heavy" ? reply.cost : reply);
        },
        (error: unknown) => {
          // Of no consequence where the other was called before.
          reject(error);
          pieces.end(error);
        },
      );
    });
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
