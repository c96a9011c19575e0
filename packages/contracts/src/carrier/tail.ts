import type { GrpcConnection, GrpcServer } from "@skald/transport/grpc";
import { tailRequest, tailRows } from "../codec/tail-messages.js";
import type { Tailer, TailRequest, TailRows } from "../tail.js";
import { type Method, serveStream, streamRemote, wireOf } from "./method.js";

const tailer = "skald.v1.Tailer";

const tail: Method<TailRequest, TailRows> = {
  path: `/${tailer}/Tail`,
  request: wireOf(tailRequest),
  answer: wireOf(tailRows),
};

type Server = Pick<GrpcServer, "add">;

/** Lets other processes follow what comes in. */
export function serveTailer(server: Server, served: Tailer): void {
  const Tail = serveStream(tail, (request, options) => served.tail(request, options));
  server.add({ name: tailer, methods: {}, streams: { Tail } });
}

/**
 * The tailer at the other end of a connection. An open tail counts as a call that runs, of which a server takes so many of
 * a connection at a time: tails should have a connection of their own.
 */
export function remoteTailer(connection: GrpcConnection): Tailer {
  return {
    async *tail(request, options) {
      try {
        yield* streamRemote(connection, tail, request, options);
      } catch (error) {
        // A tail whose signal was aborted has ended as it should.
        if (!options.signal.aborted) throw error;
      }
    },
  };
}
