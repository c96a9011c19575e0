import type { GrpcConnectionOptions } from "@skald/rpc";
import type { ModuleName } from "../../../config/targets.js";
import { NamedPeers, type PeerBook, RingPeers } from "../../discovery/peer-book.js";
import type { Peer } from "../../discovery/resolve.js";
import type { ModuleContext, Parts } from "../../module.js";
import { isShared, type RingBlock, watchServiceRing } from "../../rings.js";

type Context = Pick<ModuleContext, "config" | "log">;

interface Named {
  readonly text: string;
  readonly periodMs: number;
}

/** The query schedulers: those that are named, else those of the ring; undefined where there are none to be found. */
export function schedulerBook(
  parts: Parts,
  { config, log }: Context,
  named: Named,
): PeerBook | undefined {
  const { use_scheduler_ring, scheduler_ring: block } = config.query_scheduler;
  if (named.text !== "") return new NamedPeers({ ...named, log });
  if (!use_scheduler_ring || !isShared(block)) return undefined;
  return ringBook(parts, log, { module: "scheduler-ring", name: "scheduler", block });
}

/** The index gateways: by the ring in mode `ring`, else those that are named; undefined where there are none to be found. */
export function gatewayBook(
  parts: Parts,
  { config, log }: Context,
  named: Named,
): PeerBook | undefined {
  const { mode, ring: block } = config.index_gateway;
  if (mode === "ring" && isShared(block))
    return ringBook(parts, log, { module: "index-gateway-ring", name: "index-gateway", block });
  return named.text === "" ? undefined : new NamedPeers({ ...named, log });
}

interface BookRing {
  /** Has the ring in a process that is a member of it. */
  readonly module: ModuleName;
  readonly name: string;
  readonly block: RingBlock;
}

function ringBook(
  { serviceRings }: Parts,
  log: ModuleContext["log"],
  { module, name, block }: BookRing,
): PeerBook {
  const own = serviceRings?.[module];
  return new RingPeers(
    own === undefined ? { watched: watchServiceRing(name, block, { log }) } : { own },
  );
}

/** Why a process that needs peers can do no work yet. */
export function unknownPeers({ peers }: PeerBook, name: string): string | undefined {
  return peers.length === 0 ? `no ${name} is known` : undefined;
}

/** How to call a peer: with TLS its certificate is of the name by which it was found, unless another one is configured. */
export function forPeer<T extends Pick<GrpcConnectionOptions, "tls">>(
  options: T,
  { host }: Peer,
): T {
  const { tls } = options;
  if (tls === undefined || host === undefined || (tls.serverName ?? "") !== "") return options;
  return { ...options, tls: { ...tls, serverName: host } };
}
