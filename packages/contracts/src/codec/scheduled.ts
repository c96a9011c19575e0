import {
  type ErrorCode,
  errorCodeOf,
  errorStatus,
  type QueryStats,
  SkaldError,
  textForClients,
} from "@skald/model";
import { currentTrace, traceHeaders } from "@skald/runtime/tracing";
import type { CallOptions } from "../call.js";
import type { Querier, QueryKind, ReplyOf, RequestOf } from "../querier.js";
import type { ScheduledAnswer, ScheduledCall, ScheduledError } from "../scheduler.js";
import { decode, encode } from "./codec.js";
import type { Types } from "./types.js";

/** The messages of each kind of question. */
const kinds = {
  query: ["QueryRequest", "QueryAnswer"],
  streams: ["StreamsRequest", "StreamsAnswer"],
  labels: ["LabelsRequest", "LabelsAnswer"],
  volumes: ["VolumeRequest", "VolumeAnswer"],
  explain: ["ExplainRequest", "ExplainAnswer"],
  changes: ["ChangesRequest", "ChangesAnswer"],
} as const satisfies {
  readonly [K in QueryKind]: readonly [MessageOf<RequestOf<K>>, MessageOf<ReplyOf<K>>];
};

/** The names of the messages that are of a type. */
type MessageOf<T> = { [N in keyof Types]: Types[N] extends T ? N : never }[keyof Types];

/** A querier whose calls wait for their turn at a scheduler; `schedulerOf` chooses the scheduler of each call. */
export function scheduledQuerier(
  schedulerOf: () => {
    run(call: ScheduledCall, options: CallOptions): Promise<ScheduledAnswer>;
  },
): Querier {
  return {
    run: async <K extends QueryKind>(method: K, request: RequestOf<K>, options: CallOptions) => {
      const { tenants, actors = [] } = request;
      const body = encode<keyof Types>(kinds[method][0], request);
      const trace = currentTrace();
      const headers = trace === undefined ? {} : traceHeaders(trace);
      const call = { method, tenant: tenants.join("|"), actors, body, avoid: [], ...headers };
      const answer = await schedulerOf().run(call, options);
      const reply = decode(kinds[method][1], bodyOf(answer)) as ReplyOf<K>;
      return waited(reply, answer.queueSeconds);
    },
  };
}

/** What a call was answered with; throws what the querier threw. */
export function bodyOf({ body, error }: ScheduledAnswer): Uint8Array {
  if (body !== undefined) return body;
  throw errorOfScheduled(error ?? { code: "internal", message: "no answer" });
}

/** Answers a call that was taken from a scheduler. `asked` is what it asks, where that was read before. */
export async function answerScheduled(
  querier: Querier,
  call: ScheduledCall,
  options: CallOptions,
  asked = requestOf(call),
): Promise<Uint8Array> {
  const { method } = call;
  return encode<keyof Types>(kinds[method][1], await querier.run(method, asked, options));
}

/** What a call asks. */
export function requestOf({ method, body }: ScheduledCall): RequestOf<QueryKind> {
  return decode(kinds[method][0], body) as RequestOf<QueryKind>;
}

/** An error as the caller gets it. */
export function scheduledErrorOf(error: unknown): ScheduledError {
  const code = errorCodeOf(error);
  if (!(error instanceof SkaldError)) return { code, message: textForClients(error) };
  const { message: text, status, retryAfterSeconds, detail } = error;
  return {
    code,
    message: text,
    status,
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    ...(detail === undefined ? {} : { detail: JSON.stringify(detail) }),
  };
}

/** The same error again. */
function errorOfScheduled({ code, message: text, detail, isFinal: _, ...rest }: ScheduledError) {
  const known: ErrorCode = code in errorStatus ? (code as ErrorCode) : "internal";
  return new SkaldError(known, text, {
    ...rest,
    ...(detail === undefined ? {} : { detail: JSON.parse(detail) }),
  });
}

/** A reply with statistics tells how long the call waited too. */
function waited<Reply extends object>(reply: Reply, seconds: number): Reply {
  if (!("stats" in reply)) return reply;
  const stats = reply.stats as QueryStats;
  return { ...reply, stats: { ...stats, queueSeconds: stats.queueSeconds + seconds } };
}
