import { type GrpcConnectionOptions, GrpcServer, serverOptionsOf } from "@skald/rpc";
import { Service } from "@skald/runtime";
import { grpcTlsOptionsOf } from "../../config/server.js";
import { grpcObservers } from "../../http/request-metrics.js";
import { type BuiltModule, isCluster, type ModuleContext, type Parts } from "../module.js";
import {
  Connections,
  NamedPeers,
  type NamedPeersOptions,
  type Peer,
  type PeerBook,
  ringPeers,
} from "../peers.js";
import { isShared, watchServiceRing } from "../rings.js";

/** Connections to other processes, and the server for their calls. A process that is alone serves none. */
export function buildPeers(parts: Parts, { config, log, metrics }: ModuleContext): BuiltModule {
  const connections = new Connections();
  parts.connections = connections;
  const server = isCluster(config)
    ? new GrpcServer({
        ...serverOptionsOf(config.server, grpcTlsOptionsOf(config.server)),
        ...grpcObservers(metrics, log),
      })
    : undefined;
  parts.server = server;
  const service = new Service({
    name: "peers",
    start: async () => {
      if (server !== undefined) log.info("listening for calls", { grpcPort: await server.start() });
    },
    stop: async () => {
      connections.closeAll();
      await server?.stop();
    },
  });
  return { service };
}

type Context = Pick<ModuleContext, "config" | "log">;

/** Addresses of the configuration, and the pause between look-ups of their names. */
type Named = Pick<NamedPeersOptions, "text" | "periodMs">;

/** The query schedulers: the named ones, else those of the ring; undefined if neither is configured. */
export function schedulerBook(
  parts: Parts,
  { config, log }: Context,
  named: Named,
): PeerBook | undefined {
  const { use_scheduler_ring, scheduler_ring: block } = config.query_scheduler;
  if (named.text !== "") return new NamedPeers({ ...named, log });
  if (!use_scheduler_ring || !isShared(block)) return undefined;
  return ringPeers(
    parts.serviceRings?.["scheduler-ring"] ?? watchServiceRing("scheduler", block, { config, log }),
  );
}

/** The index gateways: those of the ring in mode `ring`, else the named ones; undefined if neither is configured. */
export function gatewayBook(
  parts: Parts,
  { config, log }: Context,
  named: Named,
): PeerBook | undefined {
  const { mode, ring: block } = config.index_gateway;
  if (mode !== "ring" || !isShared(block))
    return named.text === "" ? undefined : new NamedPeers({ ...named, log });
  return ringPeers(
    parts.serviceRings?.["index-gateway-ring"] ??
      watchServiceRing("index-gateway", block, { config, log }),
  );
}

/** Why a process that needs peers can do no work yet. */
export function unknownPeers({ peers }: PeerBook, name: string): string | undefined {
  return peers.length === 0 ? `no ${name} is known` : undefined;
}

/** The options to call a peer: with TLS its certificate names the host that was looked up, unless another name is configured. */
export function forPeer<T extends Pick<GrpcConnectionOptions, "tls">>(
  options: T,
  { host }: Peer,
): T {
  const { tls } = options;
  if (tls === undefined || host === undefined || (tls.serverName ?? "") !== "") return options;
  return { ...options, tls: { ...tls, serverName: host } };
}
