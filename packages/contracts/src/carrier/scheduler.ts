import type { GrpcConnection, GrpcServer } from "@skald/transport/grpc";
import {
  bool,
  double,
  empty,
  field,
  message,
  optional,
  rawBytes,
  repeated,
  text,
  uint,
} from "@skald/transport/protobuf";
import {
  bodyOf,
  callFields,
  cancelledCalls,
  finishedCall,
  scheduledCall,
  scheduledError,
  takeNext,
  takenCalls,
  takeRequest,
} from "../codec/scheduled.js";
import type { ScheduledAnswer, ScheduledCall, Scheduler } from "../scheduler.js";
import { callRemote, serve, serveStream, streamRemote, wireOf } from "./method.js";
import {
  type CancelRun,
  type RunAnswer,
  type RunAnswers,
  RunBatches,
  type RunRequest,
  type RunsMany,
  ServedRuns,
} from "./scheduler-runs.js";

const service = "skald.v1.Scheduler";

/** One call; older schedulers throw what queriers threw, and so do all to older frontends. */
const runOne = message<ScheduledCall & { readonly takesErrors?: boolean }>({
  ...callFields,
  takesErrors: optional(8, bool),
});

const runAnswer = message<ScheduledAnswer & RunsMany>({
  body: optional(1, rawBytes),
  queueSeconds: field(2, double),
  runsMany: optional(3, bool),
  error: optional(4, scheduledError),
  querier: optional(5, text),
});

const runRequest = message<RunRequest>({
  batch: field(1, text),
  calls: repeated(2, scheduledCall),
});

const runAnswers = message<RunAnswers>({
  answers: repeated(
    1,
    message<RunAnswer>({
      index: field(1, uint),
      body: optional(2, rawBytes),
      queueSeconds: field(3, double),
      error: optional(4, scheduledError),
      querier: optional(5, text),
    }),
  ),
});

const cancelRun = message<CancelRun>({ batch: field(1, text), index: field(2, uint) });

const methods = {
  run: { path: `/${service}/Run`, request: wireOf(runOne), answer: wireOf(runAnswer) },
  runMany: {
    path: `/${service}/RunMany`,
    request: wireOf(runRequest),
    answer: wireOf(runAnswers),
  },
  cancelRun: {
    path: `/${service}/CancelRun`,
    request: wireOf(cancelRun),
    answer: wireOf(empty),
  },
  take: { path: `/${service}/Take`, request: wireOf(takeNext), answer: wireOf(takenCalls) },
  finish: { path: `/${service}/Finish`, request: wireOf(finishedCall), answer: wireOf(empty) },
  watch: {
    path: `/${service}/Watch`,
    request: wireOf(takeRequest),
    answer: wireOf(cancelledCalls),
  },
};

/** Lets other processes call a scheduler. Every call that waits is a stream: a server for it must allow many. */
export function serveScheduler(server: Pick<GrpcServer, "add">, served: Scheduler): void {
  const runs = new ServedRuns(served);
  server.add({
    name: service,
    methods: {
      Run: serve(methods.run, async ({ takesErrors, ...call }, options) => {
        const answer = await served.run(call, options);
        if (takesErrors !== true) bodyOf(answer);
        return { ...answer, runsMany: true };
      }),
      CancelRun: serve(methods.cancelRun, async (request) => {
        runs.cancel(request);
        return {};
      }),
      Take: serve(methods.take, (request, options) => served.take(request, options)),
      Finish: serve(methods.finish, async (request, options) => {
        await served.finish(request, options);
        return {};
      }),
      Watch: serve(methods.watch, (request, options) => served.watch(request, options)),
    },
    streams: {
      RunMany: serveStream(methods.runMany, (request, options) => runs.runMany(request, options)),
    },
  });
}

/** The scheduler at the other end of a connection. */
export function remoteScheduler(connection: GrpcConnection): Scheduler {
  const runs = new RunBatches({
    run: (call, options) =>
      callRemote(connection, methods.run, { ...call, takesErrors: true }, options),
    runMany: (request, options) => streamRemote(connection, methods.runMany, request, options),
    cancelRun: (request, options) => callRemote(connection, methods.cancelRun, request, options),
  });
  return {
    run: (call, options) => runs.run(call, options),
    take: (request, options) => callRemote(connection, methods.take, request, options),
    finish: async (request, options) =>
      void (await callRemote(connection, methods.finish, request, options)),
    watch: (request, options) => callRemote(connection, methods.watch, request, options),
  };
}
