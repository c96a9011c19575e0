import {
  type ErrorCode,
  errorCodeOf,
  errorStatus,
  SkaldError,
  textForClients,
  unavailable,
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
import type {
  ChangeLog,
  ChangesRequest,
  LabelsRequest,
  Querier,
  QueryRequest,
  StreamsRequest,
  VolumeRequest,
} from "../querier.js";
import type {
  CancelledCalls,
  FinishedCall,
  Outcome,
  ScheduledAnswer,
  ScheduledCall,
  ScheduledError,
  ScheduledMethod,
  TakeNext,
  TakenCall,
  TakenCalls,
  TakeRequest,
} from "../scheduler.js";
import {
  changesAnswer,
  changesRequest,
  labelsAnswer,
  labelsRequest,
  queryAnswer,
  queryRequest,
  streamsAnswer,
  streamsRequest,
  volumeAnswer,
  volumeRequest,
} from "./query-messages.js";

const methods: readonly ScheduledMethod[] = ["query", "streams", "labels", "volumes", "changes"];

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

/** A querier whose calls wait for their turn at a scheduler; `schedulerOf` says which one takes the next. */
export function scheduledQuerier(
  schedulerOf: () => {
    run(call: ScheduledCall, options: CallOptions): Promise<ScheduledAnswer>;
  },
): Querier & ChangeLog {
  const run = async <Request extends Asked, Answer>(
    method: ScheduledMethod,
    codecs: { readonly request: MessageCodec<Request>; readonly answer: MessageCodec<Answer> },
    request: Request,
    options: CallOptions,
  ): Promise<{ value: Answer; queueSeconds: number }> => {
    const { tenants, actors = [] } = request;
    const body = encodeMessage(codecs.request, request);
    const trace = currentTrace();
    const headers = trace === undefined ? {} : traceHeaders(trace);
    const call = { method, tenant: tenants.join("|"), actors, body, avoid: [], ...headers };
    const answer = await schedulerOf().run(call, options);
    const value = decodeMessage(codecs.answer, bodyOf(answer));
    return { value, queueSeconds: answer.queueSeconds };
  };
  return {
    query: async (request, options) => {
      const { value, queueSeconds } = await run("query", queryCodecs, request, options);
      return { ...value, stats: waited(value.stats, queueSeconds) };
    },
    streams: async (request, options) =>
      (await run("streams", streamsCodecs, request, options)).value.tenants,
    labels: async (request, options) =>
      (await run("labels", labelsCodecs, request, options)).value.tenants,
    volumes: async (request, options) => {
      const { value, queueSeconds } = await run("volumes", volumeCodecs, request, options);
      return { ...value, stats: waited(value.stats, queueSeconds) };
    },
    changes: async (request, options) =>
      (await run("changes", changesCodecs, request, options)).value.spans,
  };
}

/** What a call was answered with; throws what the querier threw. */
export function bodyOf({ body, error }: ScheduledAnswer): Uint8Array {
  if (body !== undefined) return body;
  throw errorOfScheduled(error ?? { code: "internal", message: "no answer" });
}

/** Answers a call that was taken from a scheduler. */
export async function answerScheduled(
  querier: Querier & Partial<ChangeLog>,
  { method, body }: ScheduledCall,
  options: CallOptions,
): Promise<Uint8Array> {
  switch (method) {
    case "query": {
      const request: QueryRequest = decodeMessage(queryRequest, body);
      return encodeMessage(queryAnswer, await querier.query(request, options));
    }
    case "streams": {
      const request: StreamsRequest = decodeMessage(streamsRequest, body);
      return encodeMessage(streamsAnswer, { tenants: await querier.streams(request, options) });
    }
    case "labels": {
      const request: LabelsRequest = decodeMessage(labelsRequest, body);
      return encodeMessage(labelsAnswer, { tenants: await querier.labels(request, options) });
    }
    case "volumes": {
      const request: VolumeRequest = decodeMessage(volumeRequest, body);
      return encodeMessage(volumeAnswer, await querier.volumes(request, options));
    }
    case "changes": {
      const request: ChangesRequest = decodeMessage(changesRequest, body);
      const spans = await querier.changes?.(request, options);
      if (spans === undefined) throw unavailable("it is not known here what has changed");
      return encodeMessage(changesAnswer, { spans });
    }
  }
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

interface Asked {
  readonly tenants: readonly string[];
  readonly actors?: readonly string[];
}

const queryCodecs = { request: queryRequest, answer: queryAnswer };
const streamsCodecs = { request: streamsRequest, answer: streamsAnswer };
const labelsCodecs = { request: labelsRequest, answer: labelsAnswer };
const changesCodecs = { request: changesRequest, answer: changesAnswer };
const volumeCodecs = { request: volumeRequest, answer: volumeAnswer };

function waited<Stats extends { readonly queueSeconds: number }>(
  stats: Stats,
  seconds: number,
): Stats {
  return { ...stats, queueSeconds: stats.queueSeconds + seconds };
}
