import type { HeldRows, Ingester, Tailer } from "@skald/contracts";
import { Replicator, type ReplicatorOptions } from "@skald/distributor";
import { systemClock } from "@skald/model";
import { ReplicatedIngester, ReplicatedTailer } from "@skald/querier";
import type { Ring, RingInstance } from "@skald/ring";
import { connectionOptionsOf, remoteIngester, remoteTailer } from "@skald/rpc";
import { Service } from "@skald/runtime";
import { memoryBytes } from "../../../memory.js";
import { type BuiltModule, isCluster, type ModuleContext, type Parts } from "../../module.js";
import { countMembers } from "../../ring-metrics.js";
import { ingesterIdOf, watchIngesterRing } from "../../rings.js";

/** A part of the memory that pushes to one slow ingester may hold. */
const shareOfSlowIngester = 1 / 16;
const minBytesBehind = 64 * 1024 * 1024;

/** The ingesters that rows are written to and read from: the one of this process, or those of the ring. */
export function buildIngesters(parts: Parts, context: ModuleContext): BuiltModule {
  const { ownIngester } = parts;
  if (!isCluster(context.config) && ownIngester !== undefined) {
    parts.ingester = ownIngester;
    parts.tailer = ownIngester;
    parts.pushTargetWith = () => ownIngester;
    return {};
  }
  const watched = parts.ownRing === undefined ? watchIngesterRing(context) : undefined;
  const ring = (parts.ownRing ?? watched)?.ring as Ring;
  if (watched !== undefined) countMembers(context.metrics, watched.ring, "ingester");
  const ingesterOf = ingesterCalls(parts, context, ring);
  parts.pushTargetWith = (metrics) => replicatorOf(parts, context, { ring, ingesterOf, metrics });
  parts.ingester = replicatedOf(parts, context, { ring, ingesterOf });
  parts.sinceLeftMs = () => ring.sinceLeftMs;
  parts.tailer = new ReplicatedTailer<RingInstance>({
    replicasOf: readSetsOf(parts, context, ring),
    connect: tailerCalls(parts, context),
    onLost: (ingester, error) =>
      context.log.warn("an ingester is lost to a tail", { ingester, error }),
  });
  const service = new Service({
    name: "ingesters",
    start: async () => watched?.start(),
    stop: async () => watched?.stop(),
  });
  return { service, unready: () => ring.unready ?? tooFewIn(ring) };
}

type IngesterOf = (instance: Pick<RingInstance, "id" | "address">) => Ingester;

/** Calls to members of the ring; that of this process is called without a detour. */
function ingesterCalls(
  { connections, ownIngester }: Parts,
  { config }: ModuleContext,
  ring: Ring,
): IngesterOf {
  const ownId = ownIngester === undefined ? undefined : ingesterIdOf(config);
  const options = connectionOptionsOf("", config.ingester_client.grpc_client_config);
  const known = new Map<string, Ingester>();
  ring.onRead(() => {
    const addresses = new Set(ring.view.instances.map(({ address }) => address));
    for (const address of known.keys()) {
      if (addresses.has(address)) continue;
      known.delete(address);
      connections.close(address);
    }
  });
  return ({ id, address }) => {
    if (ownIngester !== undefined && id === ownId) return ownIngester;
    const found = known.get(address);
    if (found !== undefined) return found;
    const called = remoteIngester(connections.to(address, options));
    known.set(address, called);
    return called;
  };
}

function replicatorOf(
  { limits }: Parts,
  { config }: ModuleContext,
  options: Pick<ReplicatorOptions, "ring" | "ingesterOf" | "metrics">,
): Replicator {
  return new Replicator({
    ...options,
    shardSizeOf: (tenant) => limits.of(tenant).ingestion_partitions_tenant_shard_size,
    timeoutMs: config.ingester_client.remote_timeout,
    maxBytesBehind: Math.max(minBytesBehind, memoryBytes() * shareOfSlowIngester),
  });
}

/** What all ingesters hold, each row once. */
function replicatedOf(
  parts: Parts,
  context: ModuleContext,
  { ring, ingesterOf }: { ring: Ring; ingesterOf: IngesterOf },
): HeldRows {
  const { config, log, metrics } = context;
  const lost = metrics.counter("querier_ingester_failures_total", "Ingesters that did not answer.");
  return new ReplicatedIngester<RingInstance>({
    replicasOf: readSetsOf(parts, context, ring),
    connect: ingesterOf,
    queryWithinMs: config.querier.query_ingesters_within,
    oldestMs: () => ring.view.oldestMs,
    onLost: (ingester, error) => {
      lost.inc();
      log.warn("an ingester did not answer a query", { ingester, error });
    },
  });
}

/** The members of the ring that may hold rows of a tenant. */
function readSetsOf({ limits }: Parts, { config }: ModuleContext, ring: Ring) {
  const queryWithinMs = config.querier.query_ingesters_within;
  return (tenant: string) => {
    const size = limits.of(tenant).ingestion_partitions_tenant_shard_size;
    if (size <= 0 || queryWithinMs <= 0) return ring.view.readSet();
    const since = Math.min(systemClock.nowMs() - queryWithinMs, ring.view.oldestMs);
    return ring.view.shard(tenant, Math.max(size, ring.replicas), since).readSet();
  };
}

/** Tails of members of the ring; that of this process is followed without a detour. */
function tailerCalls({ connections, ownIngester }: Parts, { config }: ModuleContext) {
  const ownId = ownIngester === undefined ? undefined : ingesterIdOf(config);
  const options = connectionOptionsOf("", config.ingester_client.grpc_client_config);
  return ({ id, address }: Pick<RingInstance, "id" | "address">): Tailer =>
    ownIngester !== undefined && id === ownId
      ? ownIngester
      : remoteTailer(connections.to(address, options, { forTails: true }));
}

/** Why a push, or a query, could not be served now. */
function tooFewIn(ring: Ring): string | undefined {
  const { view } = ring;
  if (view.activeCount >= view.quorum) return undefined;
  return `at least ${view.quorum} live replicas required, could only find ${view.activeCount}`;
}
