import type { HostFunction } from "@skald/runtime";
import type { HttpRequest, HttpResponse } from "@skald/transport";
import type { QueryFacts } from "../query-context.js";
import {
  type KeptKinds,
  kindsOf,
  type ResultStores,
  storesHost,
} from "../results-cache/result-store.js";
import { type AnswerHead, PieceChannel } from "./answer-stream.js";
import type { EndpointOptions, QueryEndpoint } from "./endpoints.js";
import type { QueryJob, QueryReply } from "./query-job.js";
import {
  type QueryRequest,
  type QueryRequestOptions,
  queryRequest,
  refusesKept,
} from "./query-request.js";

/** Runs jobs on query threads; each begins on the one for small queries and goes on elsewhere if it is large. */
export interface JobLanes {
  run<Reply extends { readonly kind: string }>(
    name: string,
    payload: object,
    options: {
      readonly tenants: readonly string[];
      readonly actors: readonly string[];
      readonly host: Readonly<Record<string, HostFunction>>;
      readonly signal: AbortSignal;
    },
  ): Promise<Reply>;
}

export interface ClientQueriesOptions extends QueryRequestOptions, EndpointOptions {
  readonly lanes: JobLanes;
  /** Queriers of other processes answer. */
  readonly isElsewhere: boolean;
  /** Move both ends of a metric query down to multiples of its step. */
  readonly alignToStep: boolean;
  /** Where answers are kept; nowhere if not given. */
  readonly stores?: ResultStores;
  /** Receives each query that was run. */
  readonly onQuery?: (facts: QueryFacts) => void;
}

/** Takes requests of clients and has query threads answer them. No text of a request is read on this thread. */
export class ClientQueries {
  readonly #options: ClientQueriesOptions;
  readonly #host: Readonly<Record<string, HostFunction>>;
  readonly #kept: KeptKinds;

  constructor(options: ClientQueriesOptions) {
    const { stores = {}, onQuery } = options;
    this.#options = options;
    this.#kept = kindsOf(stores);
    this.#host = {
      ...storesHost(stores),
      queried: (facts: QueryFacts) => {
        onQuery?.(facts);
        return { value: undefined };
      },
    };
  }

  /** Answers a client as soon as the answer begins. */
  async serve(endpoint: QueryEndpoint, request: HttpRequest): Promise<HttpResponse> {
    const asked = queryRequest(endpoint, request, this.#options);
    const pieces = new PieceChannel();
    return new Promise((resolve, reject) => {
      const host = {
        head: (head: AnswerHead) => {
          resolve({ ...head, body: pieces });
          return { value: undefined };
        },
        write: async (piece: Uint8Array) => {
          await pieces.put(piece);
          return { value: undefined };
        },
      };
      const kept = refusesKept(request) ? {} : this.#kept;
      this.#run(asked, { kept, host, signal: request.signal }).then(
        (reply) => {
          if (reply.kind === "answer") resolve(reply);
          else pieces.end();
        },
        (error: unknown) => {
          // Of no consequence where the answer has begun.
          reject(error);
          pieces.end(error);
        },
      );
    });
  }

  /** Asks for the value of an endpoint that no client has. */
  async ask<Value>(request: QueryRequest, signal: AbortSignal): Promise<Value> {
    const reply = await this.#run(request, { kept: this.#kept, host: {}, signal });
    if (reply.kind !== "value") throw new Error(`${request.endpoint} has no value`);
    return reply.value as Value;
  }

  /** As `ask`, for what a client asks. */
  async read<Value>(endpoint: QueryEndpoint, request: HttpRequest): Promise<Value> {
    return this.ask(queryRequest(endpoint, request, this.#options), request.signal);
  }

  #run(
    request: QueryRequest,
    {
      kept,
      host,
      signal,
    }: {
      readonly kept: KeptKinds;
      readonly host: Readonly<Record<string, HostFunction>>;
      readonly signal: AbortSignal;
    },
  ): Promise<QueryReply> {
    const { lanes, isElsewhere, alignToStep, parquetAnswers } = this.#options;
    const job: QueryJob = {
      ...{ request, kept, isElsewhere, options: { alignToStep, parquetAnswers } },
      sentNs: process.hrtime.bigint(),
    };
    const { tenants, actors = [] } = request;
    const options = { tenants, actors, host: { ...this.#host, ...host }, signal };
    return lanes.run<QueryReply>("query", job, options);
  }
}
