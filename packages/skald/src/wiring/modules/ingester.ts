import { join } from "node:path";
import { turnCall } from "@skald/compactor/jobs";
import type { HeldRows, Ingester, PartTaker, Tailer } from "@skald/contracts";
import { Replicator, type ReplicatorOptions, takerFor } from "@skald/distributor";
import {
  defaultBounds,
  type IngesterOptions,
  Ingester as OwnIngester,
  type SegmentStore,
  type TailWork,
} from "@skald/ingester";
import { ingesterConfig } from "@skald/ingester/config";
import { errorCodeOf, formatSize, systemClock } from "@skald/model";
import { ReplicatedIngester, ReplicatedTailer } from "@skald/querier";
import type { Ring, RingInstance } from "@skald/ring";
import {
  connectionOptionsOf,
  remoteIngester,
  remoteTailer,
  serveIngester,
  serveTailer,
} from "@skald/rpc";
import { memoryBytes, Service } from "@skald/runtime";
import { Metrics } from "@skald/runtime/metrics";
import { type ObjectStore, type SealedSegment, segmentKey } from "@skald/storage";
import type { Config } from "../../config/root.js";
import { type IngesterEnding, operatorRoutes, ShutdownMarker } from "../../http/operator-routes.js";
import { ringRoutes } from "../../http/ring-routes.js";
import { LostMembers } from "../lost-members.js";
import { type BuiltModule, isCluster, type ModuleContext, type Parts } from "../module.js";
import { OldestHeld } from "../oldest-held.js";
import { ReturnedDisk } from "../returned-disk.js";
import { buildIngesterRing, ingesterIdOf, watchIngesterRing } from "../rings.js";
import { deleteRequestsOf } from "./deletes.js";

/** The ingester of this process, and its place in the ring. */
export function buildIngester(parts: Parts, context: ModuleContext): BuiltModule {
  const { config, log, metrics } = context;
  const { limits, pool, scanner, store, threads } = parts;
  const { options, warnings } = ingesterOptionsOf(config, ingesterIdOf(config));
  for (const warning of warnings) log.warn(warning);
  const oldest = new OldestHeld({
    oldestNs: () => ingester.oldestNs(),
    publish: () => own.tell(),
    clock: systemClock,
  });
  const ingester: OwnIngester = new OwnIngester({
    ...{ options, scanner, metrics, clock: systemClock },
    log: log.child({ component: "ingester" }),
    limitsOf: (tenant) => limits.of(tenant),
    store: segmentStore(store),
    ...(isCluster(config) ? { aroundPush: (batch, push) => oldest.aroundPush(batch, push) } : {}),
    runTails: (task, { signal, tenant, bytes }) => {
      const share = { tenant, actors: [], cost: bytes * task.tails.length };
      return pool.run<TailWork>("tail", task, { lane: "tail", share, signal });
    },
    onDropped: (path) => threads.forget(path),
    seal: (job) => pool.run<SealedSegment>("seal", job, { lane: "seal" }),
    merge: (job, { signal }) =>
      pool.run<SealedSegment | undefined>("merge_segments", job, {
        ...{ lane: "background", signal },
        // These merges are small, so they need not wait for others.
        host: { [turnCall]: async () => ({ value: undefined }) },
      }),
  });
  parts.ownIngester = ingester;
  if (parts.server !== undefined) {
    serveIngester(parts.server, ingester);
    serveTailer(parts.server, ingester);
  }
  const marker = new ShutdownMarker(config.ingester.shutdown_marker_path);
  const own = buildIngesterRing(context, {
    oldestMs: () => oldest.oldestMs(),
    covers: (earlier) => lost.covers(earlier),
  });
  const lost: LostMembers = new LostMembers({
    ...{ ring: own.ring, id: own.id, log: log.child({ component: "ring" }) },
    heartbeatTimeoutMs: config.ingester.lifecycler.ring.heartbeat_timeout,
    flush: () => ingester.flush(),
    publish: () => own.tell(),
  });
  parts.ownRing = own;
  const returned = returnedDiskOf(parts, context, options);
  /** Set when an operator has asked it to end. */
  let ending: IngesterEnding | undefined;
  const service = new Service({
    name: "ingester",
    start: async (signal) => {
      await own.start();
      await returned?.prepare(signal);
      await ingester.start(signal);
      await own.ring.refresh().catch(() => undefined);
      if (!ingester.holdsRows) lost.adopt();
      await own.join(signal);
    },
    run: async (signal) => {
      await Promise.all([ingester.runUntil(signal), returned?.watch(signal)]);
    },
    stop: async () => {
      await own.leave();
      await lost.stop();
      const flush = marker.isSet() || ending?.flush;
      await ingester.stop(flush === undefined ? {} : { flush });
      await own.stop({ ...ending, holdsRows: ingester.holdsRows });
    },
  });
  const stopIngester = async (asked: IngesterEnding) => {
    ending ??= asked;
    await service.stop();
    if (service.failure !== undefined) throw service.failure;
  };
  const endProcess = (reason: string) => context.endProcess?.(reason);
  return {
    service,
    unready: () => ingester.unready ?? own.ring.unready,
    complaint: () => ingester.complaint,
    routes: [
      ...operatorRoutes({ ingester, marker, stopIngester, endProcess }),
      ...ringRoutes({ path: "/ring", title: "Ingester ring", ring: own.ring }),
    ],
  };
}

/** The disk of an ingester of a ring, which may have forgotten it while delete requests were carried out. */
function returnedDiskOf(
  parts: Parts,
  context: ModuleContext,
  { config, dataDir }: IngesterOptions,
): ReturnedDisk | undefined {
  if (!isCluster(context.config) || !context.config.compactor.retention_enabled) return undefined;
  const log = context.log.child({ component: "deletes" });
  return new ReturnedDisk({
    walDir: config.wal.dir,
    segmentsDir: join(dataDir, "segments"),
    deletes: deleteRequestsOf(parts, { ...context, log, metrics: new Metrics() }),
    forgottenAfterMs: context.config.ingester.lifecycler.ring.heartbeat_timeout,
    ...{ log, clock: systemClock },
  });
}

/** A replay may take this part of the memory; the seals that make room, and the rest of the program, need the other. */
const replayShare = 1 / 2;

const usualCeiling = ingesterConfig.shape.wal.shape.replay_memory_ceiling.parse(undefined);

/** The options of the ingester, with warnings about settings that this machine cannot honour. */
export function ingesterOptionsOf(
  config: Config,
  instanceId: string,
  memory = memoryBytes(),
): { options: IngesterOptions; warnings: string[] } {
  const maxReplayBytes = memory * replayShare;
  const options = {
    instanceId,
    dataDir: join(config.common.path_prefix || ".", "ingester"),
    config: config.ingester,
    bounds: { ...defaultBounds, maxReplayBytes },
  };
  const asked = config.ingester.wal.replay_memory_ceiling;
  if (asked <= maxReplayBytes || asked === usualCeiling) return { options, warnings: [] };
  const warning = `ingester.wal.replay_memory_ceiling: ${formatSize(asked)} is more than half the memory; ${formatSize(maxReplayBytes)} holds`;
  return { options, warnings: [warning] };
}

/** The object store as the ingester sees it: segments instead of keys. */
export function segmentStore(store: ObjectStore): SegmentStore {
  return {
    put: async (ref, path, options) => {
      await store.putFile(segmentKey(ref), path, { ...options, ifAbsent: true, isSynced: true });
    },
    has: async (ref, { signal }) => {
      try {
        const { sizeBytes } = await store.stat(segmentKey(ref), { signal });
        return sizeBytes === ref.sizeBytes;
      } catch (error) {
        if (errorCodeOf(error) === "not_found") return false;
        throw error;
      }
    },
  };
}

/** All ingesters as one: that of this process, or those of the ring. */
export function buildIngesters(parts: Parts, context: ModuleContext): BuiltModule {
  const { ownIngester } = parts;
  if (!isCluster(context.config) && ownIngester !== undefined) {
    parts.ingester = ownIngester;
    parts.everyIngester = ownIngester;
    parts.tailer = ownIngester;
    parts.pushTargetWith = () => ownIngester;
    return {};
  }
  const watched = parts.ownRing === undefined ? watchIngesterRing(context) : undefined;
  const ring = (parts.ownRing ?? watched)?.ring as Ring;
  const ingesterOf = ingesterCalls(parts, context, ring);
  const replicasOf = readSetsOf(parts, context, ring);
  parts.pushTargetWith = (metrics) => replicatorOf(parts, context, { ring, ingesterOf, metrics });
  const queryWithinMs = context.config.querier.query_ingesters_within;
  const heldRows = heldRowsOf(context, { ring, ingesterOf });
  parts.ingester = heldRows(replicasOf, queryWithinMs);
  // Deletions are done when no ingester has a row, so that none may be missing.
  parts.everyIngester = heldRows(() => ring.view.everyHolder(), 0);
  parts.sinceLeftMs = () => ring.sinceLeftMs;
  parts.tailer = new ReplicatedTailer<RingInstance>({
    replicasOf,
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

type IngesterOf = (
  instance: Pick<RingInstance, "id" | "address">,
) => Ingester | (Ingester & PartTaker);

/** Calls to members of the ring; the ingester of this process is called directly. */
function ingesterCalls(
  { connections, ownIngester }: Parts,
  { config }: ModuleContext,
  ring: Ring,
): IngesterOf {
  const ownId = ingesterIdOf(config);
  const options = connectionOptionsOf("", config.ingester_client.grpc_client_config);
  const known = new Map<string, Ingester & PartTaker>();
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

/** Pushes to one slow ingester may hold this part of the memory, and this many bytes in any case. */
const shareOfSlowIngester = 1 / 16;
const minBytesBehind = 64 * 1024 * 1024;

function replicatorOf(
  { limits }: Parts,
  { config }: ModuleContext,
  {
    ingesterOf,
    ...options
  }: Pick<ReplicatorOptions, "ring" | "metrics"> & { readonly ingesterOf: IngesterOf },
): Replicator {
  return new Replicator({
    ...options,
    ingesterOf: (instance) => {
      const ingester = ingesterOf(instance);
      return "pushPart" in ingester ? ingester : takerFor(ingester);
    },
    shardSizeOf: (tenant) => limits.of(tenant).ingestion_partitions_tenant_shard_size,
    timeoutMs: config.ingester_client.remote_timeout,
    maxBytesBehind: Math.max(minBytesBehind, memoryBytes() * shareOfSlowIngester),
  });
}

type ReadSetOf = (tenant: string) => ReturnType<Ring["view"]["readSet"]>;

/** The rows of some ingesters, each row once; see `ReplicatedIngesterDeps`. */
function heldRowsOf(
  { log, metrics }: ModuleContext,
  { ring, ingesterOf }: { ring: Ring; ingesterOf: IngesterOf },
): (replicasOf: ReadSetOf, queryWithinMs: number) => HeldRows {
  const lost = metrics.counter("querier_ingester_failures_total", "Ingesters that did not answer.");
  return (replicasOf, queryWithinMs) =>
    new ReplicatedIngester<RingInstance>({
      ...{ replicasOf, queryWithinMs, connect: ingesterOf },
      oldestMs: () => ring.view.oldestMs,
      onLost: (ingester, error) => {
        lost.inc();
        log.warn("an ingester did not answer a query", { ingester, error });
      },
    });
}

/** The members of the ring that may hold rows of a tenant. */
function readSetsOf({ limits }: Parts, { config }: ModuleContext, ring: Ring): ReadSetOf {
  const queryWithinMs = config.querier.query_ingesters_within;
  return (tenant) => {
    const size = limits.of(tenant).ingestion_partitions_tenant_shard_size;
    if (size <= 0 || queryWithinMs <= 0) return ring.view.readSet();
    const since = Math.min(systemClock.nowMs() - queryWithinMs, ring.view.oldestMs);
    return ring.view.shard(tenant, Math.max(size, ring.replicas), since).readSet();
  };
}

/** Tails of members of the ring; the ingester of this process is followed directly. */
function tailerCalls({ connections, ownIngester }: Parts, { config }: ModuleContext) {
  const ownId = ingesterIdOf(config);
  const options = connectionOptionsOf("", config.ingester_client.grpc_client_config);
  return ({ id, address }: Pick<RingInstance, "id" | "address">): Tailer =>
    ownIngester !== undefined && id === ownId
      ? ownIngester
      : remoteTailer(connections.to(address, options, { forTails: true }));
}

/** Why a push or a query could not be served now; undefined if enough ingesters are active. */
function tooFewIn(ring: Ring): string | undefined {
  const { view } = ring;
  if (view.activeCount >= view.quorum) return undefined;
  return `at least ${view.quorum} live replicas required, could only find ${view.activeCount}`;
}
