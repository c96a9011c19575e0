import {
  type ErrorCode,
  errorCodeOf,
  errorStatus,
  type QueryStats,
  SkaldError,
  textForClients,
} from "@skald/model";
import { currentTrace, traceHeaders } from "@skald/runtime/tracing";
import {
  bool,
  decodeMessage,
  double,
  encodeMessage,
  type FieldsOf,
  field,
  type MessageCodec,
  message,
  oneOf,
  optional,
  rawBytes,
  repeated,
  text,
  uint,
} from "@skald/transport/protobuf";
import type { CallOptions } from "../call.js";
import type { Querier, QueryKind, RequestOf } from "../querier.js";
import type {
  CancelledCalls,
  FinishedCall,
  Outcome,
  ScheduledAnswer,
  ScheduledCall,
  ScheduledError,
  TakeNext,
  TakenCall,
  TakenCalls,
  TakeRequest,
} from "../scheduler.js";
import { queryCodecs } from "./query-messages.js";

const methods = Object.keys(queryCodecs) as QueryKind[];

/** Of a call, wherever it goes. */
export const callFields: FieldsOf<ScheduledCall> = {
  method: field(1, oneOf(methods)),
  tenant: field(2, text),
  actors: repeated(3, text),
  body: field(4, rawBytes),
  traceparent: optional(5, text),
  tracestate: optional(6, text),
  avoid: repeated(7, text),
};

export const scheduledCall: MessageCodec<ScheduledCall> = message<ScheduledCall>(callFields);

export const takeRequest: MessageCodec<TakeRequest> = message<TakeRequest>({
  querier: field(1, text),
});

const takenFields = { id: field(1, uint), call: field(2, scheduledCall) };

export const takenCalls: MessageCodec<TakenCalls> = message<TakenCalls>({
  ...takenFields,
  others: repeated(3, message<TakenCall>(takenFields)),
});

export const scheduledError: MessageCodec<ScheduledError> = message<ScheduledError>({
  code: field(1, text),
  message: field(2, text),
  status: optional(3, uint),
  retryAfterSeconds: optional(4, double),
  detail: optional(5, text),
  isFinal: optional(6, bool),
});

const outcomeFields = {
  id: field(2, uint),
  body: optional(3, rawBytes),
  error: optional(4, scheduledError),
};

export const finishedCall: MessageCodec<FinishedCall> = message<FinishedCall>({
  querier: field(1, text),
  ...outcomeFields,
});

const outcome = message<Outcome>(outcomeFields);

export const takeNext: MessageCodec<TakeNext> = message<TakeNext>({
  querier: field(1, text),
  finished: optional(2, outcome),
  max: optional(3, uint),
  others: repeated(4, outcome),
});

export const cancelledCalls: MessageCodec<CancelledCalls> = message<CancelledCalls>({
  ids: repeated(1, uint),
  givesMany: optional(2, bool),
});

/** A querier whose calls wait for their turn at a scheduler; `schedulerOf` chooses the scheduler of each call. */
export function scheduledQuerier(
  schedulerOf: () => {
    run(call: ScheduledCall, options: CallOptions): Promise<ScheduledAnswer>;
  },
): Querier {
  return {
    run: async <K extends QueryKind>(method: K, request: RequestOf<K>, options: CallOptions) => {
      const { tenants, actors = [] } = request;
      const body = encodeMessage(queryCodecs[method].request, request);
      const trace = currentTrace();
      const headers = trace === undefined ? {} : traceHeaders(trace);
      const call = { method, tenant: tenants.join("|"), actors, body, avoid: [], ...headers };
      const answer = await schedulerOf().run(call, options);
      const reply = decodeMessage(queryCodecs[method].reply, bodyOf(answer));
      return waited(reply, answer.queueSeconds);
    },
  };
}

/** What a call was answered with; throws what the querier threw. */
export function bodyOf({ body, error }: ScheduledAnswer): Uint8Array {
  if (body !== undefined) return body;
  throw errorOfScheduled(error ?? { code: "internal", message: "no answer" });
}

/** Answers a call that was taken from a scheduler. */
export function answerScheduled(
  querier: Querier,
  { method, body }: ScheduledCall,
  options: CallOptions,
): Promise<Uint8Array> {
  return answerKind(querier, method, body, options);
}

async function answerKind<K extends QueryKind>(
  querier: Querier,
  kind: K,
  body: Uint8Array,
  options: CallOptions,
): Promise<Uint8Array> {
  const { request, reply } = queryCodecs[kind];
  return encodeMessage(reply, await querier.run(kind, decodeMessage(request, body), options));
}

/** An error as it is told to whoever waits for the call. */
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
export function errorOfScheduled({
  code,
  message: text,
  detail,
  isFinal: _,
  ...rest
}: ScheduledError) {
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
