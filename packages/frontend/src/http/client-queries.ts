import type { Querier } from "@skald/contracts";
import type { Expr } from "@skald/logql";
import type { HostFunction } from "@skald/runtime";
import type { HttpRequest, HttpResponse } from "@skald/transport";
import type { PlannedQuery } from "../frontend.js";
import type { QueryFacts } from "../query-context.js";
import {
  boundedStores,
  type KeptKinds,
  kindsOf,
  type ResultStores,
  storesHost,
} from "../results-cache/result-store.js";
import { type AnswerHead, PieceChannel } from "./answer-stream.js";
import type {
  Endpoint,
  EndpointOptions,
  EndpointRequest,
  PlannedTail,
  QueryEndpoint,
} from "./endpoints.js";
import { endpointsOf, type QueryJob, type QueryReply } from "./query-job.js";
import {
  type QueryRequest,
  type QueryRequestOptions,
  queryRequest,
  refusesKept,
} from "./query-request.js";

/** Runs jobs where they belong by what they cost; see `QueryLanes` of the querier. */
export interface JobLanes {
  run<Reply extends { readonly kind: string }>(
    name: string,
    payload: object,
    options: {
      readonly tenants: readonly string[];
      readonly actors: readonly string[];
      readonly host: Readonly<Record<string, HostFunction>>;
      readonly signal: AbortSignal;
      readonly here?: (
        planned: unknown,
        querier: Querier,
        tooMuch: (bytes: number) => Error,
      ) => Promise<Reply>;
      readonly planned?: unknown;
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

/** Bytes of cached answers that are put together on this thread. */
const maxKeptHere = 64 * 1024;

/**
 * Takes requests of clients. Query threads plan them; light queries, which are little more than their scans, come back and are
 * answered here, where a hop to a thread and its calls for sources and scans would cost more than the rest. All others are
 * answered by the threads. No LogQL is parsed, and no stage compiled, on this thread.
 */
export class ClientQueries {
  readonly #options: ClientQueriesOptions;
  readonly #host: Readonly<Record<string, HostFunction>>;
  readonly #kept: KeptKinds;
  readonly #endpoints: ReturnType<typeof endpointsOf>;
  readonly #known = new KnownQueries();
  #running = 0;

  constructor(options: ClientQueriesOptions) {
    const { stores = {}, onQuery } = options;
    this.#options = options;
    this.#kept = kindsOf(stores);
    this.#endpoints = endpointsOf(options);
    this.#host = {
      ...storesHost(stores),
      queried: (facts: QueryFacts) => {
        onQuery?.(facts);
        return { value: undefined };
      },
    };
  }

  /** Requests of clients that run. */
  get running(): number {
    return this.#running;
  }

  /** Answers a client as soon as the answer begins. */
  async serve(endpoint: QueryEndpoint, request: HttpRequest): Promise<HttpResponse> {
    const asked = queryRequest(endpoint, request, this.#options);
    const pieces = new PieceChannel();
    this.#running++;
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
      const { params, signal } = request;
      this.#run(asked, { params, mayKeep: !refusesKept(request), host, signal }).then(
        (reply) => {
          this.#running--;
          if (reply.kind === "written") pieces.end();
          else if (reply.kind === "value") reject(new Error(`${endpoint} is for no client`));
          else resolve(reply);
        },
        (error: unknown) => {
          this.#running--;
          // Of no consequence where the answer has begun.
          reject(error);
          pieces.end(error);
        },
      );
    });
  }

  /** Asks for the value of an endpoint that no client has. */
  async ask<Value>(request: QueryRequest, signal: AbortSignal): Promise<Value> {
    const reply = await this.#run(request, { mayKeep: true, host: {}, signal });
    if (reply.kind !== "value") throw new Error(`${request.endpoint} has no value`);
    return reply.value as Value;
  }

  /** As `ask`, for what a client asks. */
  async read<Value>(endpoint: QueryEndpoint, request: HttpRequest): Promise<Value> {
    return this.ask(queryRequest(endpoint, request, this.#options), request.signal);
  }

  /** Plans a tail; its history is then read without another thread, before new rows are many. */
  async planTail(request: HttpRequest): Promise<PlannedTail> {
    const planned = await this.read<PlannedTail>("tail", request);
    const { tail, refusal } = planned;
    if (refusal === undefined) this.#known.note(tail.query, tail.expr);
    return planned;
  }

  #run(
    request: QueryRequest,
    {
      params = new URLSearchParams(request.params),
      mayKeep,
      host,
      signal,
    }: {
      /** Those of the request. */
      readonly params?: URLSearchParams;
      readonly mayKeep: boolean;
      readonly host: Readonly<Record<string, HostFunction>>;
      readonly signal: AbortSignal;
    },
  ): Promise<ServedReply> {
    const { lanes, isElsewhere, alignToStep, parquetAnswers, stores = {} } = this.#options;
    const job: QueryJob = {
      ...{ request, isElsewhere, options: { alignToStep, parquetAnswers } },
      ...{ kept: mayKeep ? this.#kept : {}, givesBack: !isElsewhere },
      sentNs: process.hrtime.bigint(),
    };
    const { tenants, actors = [] } = request;
    const options = { tenants, actors, host: { ...this.#host, ...host }, signal };
    if (isElsewhere) return lanes.run<ServedReply>("query", job, options);
    const endpoint: Endpoint<unknown> = this.#endpoints[request.endpoint];
    const { endpoint: name, variables, headers } = request;
    const asked = { endpoint: name, params, variables, headers };
    const known = this.#known.of(asked);
    return lanes.run<ServedReply>("query", job, {
      ...options,
      // There is no LogQL, or a thread has read it before.
      ...(known === undefined && !isPlain(asked)
        ? {}
        : { planned: endpoint.plan(asked, request, known) }),
      here: async (planned, querier, tooMuch) => {
        if (isTextOnly(request.endpoint)) {
          const { text, expr } = planned as PlannedQuery;
          this.#known.note(text, expr);
        }
        const answer = await endpoint.answer(planned, asked, {
          ...{ ...request, querier, signal, onQuery: this.#options.onQuery },
          ...(mayKeep ? { stores: boundedStores(stores, maxKeptHere, tooMuch) } : {}),
        });
        return "value" in answer ? { kind: "value", ...answer } : { kind: "answer", ...answer };
      },
    });
  }
}

/** Expressions of light queries, which threads have parsed and checked: clients send the same texts again and again. */
class KnownQueries {
  readonly #known = new Map<string, Expr>();

  /** The expression of a request if it is known, and nothing but its text makes it. */
  of({ endpoint, params }: Asked): Expr | undefined {
    return isTextOnly(endpoint) ? this.#known.get(params.get("query") ?? "") : undefined;
  }

  note(text: string, expr: Expr): void {
    if (text.length > maxKnownLength || this.#known.has(text)) return;
    const [oldest] = this.#known.keys();
    if (this.#known.size >= maxKnown && oldest !== undefined) this.#known.delete(oldest);
    this.#known.set(text, expr);
  }
}

const maxKnown = 1000;
/** Characters of a text that is remembered. */
const maxKnownLength = 1000;
const textOnly: readonly QueryEndpoint[] = ["query_range", "query", "rule", "tail_history"];

function isTextOnly(endpoint: QueryEndpoint): boolean {
  return textOnly.includes(endpoint);
}

type Asked = { readonly endpoint: QueryEndpoint } & EndpointRequest;

/** An answer of a thread, or of this one, whose body may be made as the client takes it. */
type ServedReply = QueryReply | ({ readonly kind: "answer" } & HttpResponse);

/** Whether a request has no LogQL. */
function isPlain({ endpoint, params }: Asked): boolean {
  const isList = endpoint === "labels" || endpoint === "label_values";
  return isList && (params.get("query") ?? "").trim() === "";
}
