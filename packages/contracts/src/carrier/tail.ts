import type { GrpcConnection, GrpcServer } from "@skald/transport/grpc";
import { patternsAnswer, patternsRequest, tailRequest, tailRows } from "../codec/tail-messages.js";
import type { PatternIngester } from "../patterns.js";
import type { Tailer, TailRequest, TailRows } from "../tail.js";
import { callRemote, type Method, serve, serveStream, streamRemote, wireOf } from "./method.js";

const tailer = "skald.v1.Tailer";
const patternIngester = "skald.v1.PatternIngester";

const tail: Method<TailRequest, TailRows> = {
  path: `/${tailer}/Tail`,
  request: wireOf(tailRequest),
  answer: wireOf(tailRows),
};

const patterns = {
  path: `/${patternIngester}/Patterns`,
  request: wireOf(patternsRequest),
  answer: wireOf(patternsAnswer),
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

/** Lets other processes ask for patterns. */
export function servePatternIngester(server: Server, served: PatternIngester): void {
  const Patterns = serve(patterns, async (request, options) => ({
    patterns: await served.patterns(request, options),
  }));
  server.add({ name: patternIngester, methods: { Patterns } });
}

/** The pattern ingester at the other end of a connection. */
export function remotePatternIngester(connection: GrpcConnection): PatternIngester {
  return {
    patterns: async (request, options) =>
      (await callRemote(connection, patterns, request, options)).patterns,
  };
}
