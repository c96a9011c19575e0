import { GrpcServer, serverOptionsOf } from "@skald/rpc";
import { Service } from "@skald/runtime";
import { grpcTlsOptionsOf } from "../../../config/tls-options.js";
import { callObserver, cutObserver } from "../../../http/request-metrics.js";
import { Connections } from "../../connections.js";
import { type BuiltModule, isCluster, type ModuleContext, type Parts } from "../../module.js";

/** Calls to other processes and from them. A process that is alone listens for none. */
export function buildPeers(parts: Parts, { config, log, metrics }: ModuleContext): BuiltModule {
  parts.connections = new Connections();
  const panics = metrics.counter("grpc_panic_total", "Calls that failed for a fault of ours.");
  const server = isCluster(config)
    ? new GrpcServer({
        ...serverOptionsOf(config.server, grpcTlsOptionsOf(config)),
        onEnd: callObserver(metrics),
        onCut: cutObserver(metrics, log, "grpc"),
        onError: (error, path) => {
          panics.inc();
          log.error("a call failed", { path, error });
        },
      })
    : undefined;
  parts.server = server;
  const service = new Service({
    name: "peers",
    start: async () => {
      if (server !== undefined) log.info("listening for calls", { grpcPort: await server.start() });
    },
    stop: async () => {
      parts.connections.closeAll();
      await server?.stop();
    },
  });
  return { service };
}
