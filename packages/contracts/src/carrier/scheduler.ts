import type { GrpcConnection, GrpcServer } from "@skald/transport/grpc";
import { empty } from "@skald/transport/protobuf";
import {
  cancelledCalls,
  finishedCall,
  scheduledAnswer,
  scheduledCall,
  takeNext,
  takenCall,
  takeRequest,
} from "../codec/scheduled.js";
import type { Scheduler } from "../scheduler.js";
import { callRemote, serve, wireOf } from "./method.js";

const service = "skald.v1.Scheduler";

const methods = {
  run: {
    path: `/${service}/Run`,
    request: wireOf(scheduledCall),
    answer: wireOf(scheduledAnswer),
  },
  take: { path: `/${service}/Take`, request: wireOf(takeNext), answer: wireOf(takenCall) },
  finish: { path: `/${service}/Finish`, request: wireOf(finishedCall), answer: wireOf(empty) },
  watch: {
    path: `/${service}/Watch`,
    request: wireOf(takeRequest),
    answer: wireOf(cancelledCalls),
  },
};

/** Lets other processes call a scheduler. Every call that waits is a stream: a server for it must allow many. */
export function serveScheduler(server: Pick<GrpcServer, "add">, served: Scheduler): void {
  server.add({
    name: service,
    methods: {
      Run: serve(methods.run, (call, options) => served.run(call, options)),
      Take: serve(methods.take, (request, options) => served.take(request, options)),
      Finish: serve(methods.finish, async (request, options) => {
        await served.finish(request, options);
        return {};
      }),
      Watch: serve(methods.watch, (request, options) => served.watch(request, options)),
    },
  });
}

/** The scheduler at the other end of a connection. */
export function remoteScheduler(connection: GrpcConnection): Scheduler {
  return {
    run: (call, options) => callRemote(connection, methods.run, call, options),
    take: (request, options) => callRemote(connection, methods.take, request, options),
    finish: async (request, options) =>
      void (await callRemote(connection, methods.finish, request, options)),
    watch: (request, options) => callRemote(connection, methods.watch, request, options),
  };
}
