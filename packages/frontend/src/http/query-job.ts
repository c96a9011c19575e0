import type { Querier } from "@skald/contracts";
import { systemClock } from "@skald/model";
import type { JobContext } from "@skald/runtime";
import { Frontend } from "../frontend.js";
import { type KeptKinds, remoteStores } from "../results-cache/result-store.js";
import { type AnswerReply, writeAnswer } from "./answer-stream.js";
import { type Endpoint, type EndpointOptions, queryEndpoints } from "./endpoints.js";
import type { QueryRequest } from "./query-request.js";

/** A request on its way to a query thread: plain data. */
export interface QueryJob {
  readonly request: QueryRequest;
  /** The request as its endpoint planned it, where that was done before. */
  readonly planned?: unknown;
  /** When the request was handed over, ns by the clock of the process. */
  readonly sentNs: bigint;
  /** Where answers are kept. */
  readonly kept: KeptKinds;
  /** A query that takes next to nothing besides its scans is given back when it is planned. */
  readonly givesBack: boolean;
  /** Queriers of other processes answer: this process only plans and encodes. */
  readonly isElsewhere: boolean;
  /** The same for all jobs of a process. */
  readonly options: ThreadOptions;
}

export interface ThreadOptions extends EndpointOptions {
  readonly alignToStep: boolean;
}

/** How a job ends: with an answer to a client, or with a value. */
export type QueryReply = AnswerReply | { readonly kind: "value"; readonly value: unknown };

/** A request that is planned, and that the thread it came from shall answer: plain data. */
export interface PlannedReply {
  readonly kind: "planned";
  readonly planned: unknown;
}

/** The plan of a longer request is work to read for the thread that gets it. */
const maxLightChars = 8 * 1024;

/** Answers requests on a query thread. */
export class FrontendThread {
  #endpoints: ReturnType<typeof queryEndpoints> | undefined;

  /**
   * Plans a request and answers it. `querierOf` makes the querier of the job; it is given the planned request, with which
   * another thread can go on.
   */
  async answer(
    { request, planned, sentNs, kept, givesBack, isElsewhere, options }: QueryJob,
    context: JobContext,
    querierOf: (planned: unknown) => Querier,
  ): Promise<QueryReply | PlannedReply> {
    this.#endpoints ??= endpointsOf(options);
    const endpoint: Endpoint<unknown> = this.#endpoints[request.endpoint];
    const asked = { ...request, params: new URLSearchParams(request.params) };
    const plan = planned ?? endpoint.plan(asked, request);
    const isLight = givesBack && planned === undefined && request.params.length <= maxLightChars;
    if (isLight && endpoint.isLight?.(plan) === true) return { kind: "planned", planned: plan };
    const answer = await endpoint.answer(plan, asked, {
      ...request,
      querier: querierOf(plan),
      signal: context.signal,
      stores: remoteStores(kept, context),
      queueSeconds: Number(process.hrtime.bigint() - sentNs) / 1e9,
      splitsByTime: isElsewhere,
      // Nobody listens any more when the client has given the query up.
      onQuery: (facts) => void context.call("queried", facts).catch(() => undefined),
    });
    return "value" in answer ? { kind: "value", ...answer } : writeAnswer(answer, context);
  }
}

export function endpointsOf({ alignToStep, parquetAnswers }: ThreadOptions) {
  return queryEndpoints(new Frontend({ clock: systemClock, alignToStep }), { parquetAnswers });
}
