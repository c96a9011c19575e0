import type { GrpcConnection, GrpcServer } from "@skald/transport/grpc";
import { empty } from "@skald/transport/protobuf";
import { foundPatterns, patternsRequest, sampledLines } from "../codec/pattern-messages.js";
import type { PatternIngester } from "../patterns.js";
import { callRemote, serve, wireOf } from "./method.js";

const patternIngester = "skald.v1.PatternIngester";

const learn = {
  path: `/${patternIngester}/Learn`,
  request: wireOf(sampledLines),
  answer: wireOf(empty),
};

const patterns = {
  path: `/${patternIngester}/Patterns`,
  request: wireOf(patternsRequest),
  answer: wireOf(foundPatterns),
};

/** Lets other processes send lines, and ask for their patterns. */
export function servePatternIngester(
  server: Pick<GrpcServer, "add">,
  served: PatternIngester,
): void {
  const Learn = serve(learn, async (lines, options) => {
    await served.learn(lines, options);
    return {};
  });
  const Patterns = serve(patterns, (request, options) => served.patterns(request, options));
  server.add({ name: patternIngester, methods: { Learn, Patterns } });
}

/** The pattern ingester at the other end of a connection. */
export function remotePatternIngester(connection: GrpcConnection): PatternIngester {
  return {
    learn: async (lines, options) => void (await callRemote(connection, learn, lines, options)),
    patterns: (request, options) => callRemote(connection, patterns, request, options),
  };
}
