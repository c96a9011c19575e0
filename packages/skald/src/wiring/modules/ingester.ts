import { turnCall } from "@skald/compactor/jobs";
import { Ingester } from "@skald/ingester";
import { systemClock } from "@skald/model";
import { serveIngester, serveTailer } from "@skald/rpc";
import { Service } from "@skald/runtime";
import type { TailFound } from "@skald/scan";
import type { SealedSegment } from "@skald/storage";
import { type IngesterEnding, operatorRoutes, ShutdownMarker } from "../../http/operator-routes.js";
import { ringRoutes } from "../../http/ring-routes.js";
import { ingesterOptionsOf } from "../ingester-options.js";
import { type BuiltModule, isCluster, type ModuleContext, type Parts } from "../module.js";
import { OldestHeld } from "../oldest-held.js";
import { countMembers } from "../ring-metrics.js";
import { buildIngesterRing, ingesterIdOf } from "../rings.js";
import { segmentStore } from "../segment-store.js";

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
  const ingester: Ingester = new Ingester({
    options,
    ...(isCluster(config) ? { aroundPush: (batch, push) => oldest.aroundPush(batch, push) } : {}),
    limitsOf: (tenant) => limits.of(tenant),
    store: segmentStore(store),
    scanner,
    runTails: (task, { signal, tenant, bytes }) => {
      const share = { tenant, actors: [], cost: bytes * task.tails.length };
      return pool.run<TailFound[]>("tail", task, { lane: "query", share, signal });
    },
    onDropped: (path) => threads.forget(path),
    seal: (job) => pool.run<SealedSegment>("seal", job, { lane: "background" }),
    merge: (job, { signal }) =>
      pool.run<SealedSegment | undefined>("merge_segments", job, {
        lane: "background",
        signal,
        // They are small: nobody waits for long.
        host: { [turnCall]: async () => ({ value: undefined }) },
      }),
    clock: systemClock,
    log: log.child({ component: "ingester" }),
    metrics,
  });
  parts.ownIngester = ingester;
  if (parts.server !== undefined) {
    serveIngester(parts.server, ingester);
    serveTailer(parts.server, ingester);
  }
  const marker = new ShutdownMarker(config.ingester.shutdown_marker_path);
  const own = buildIngesterRing({ config, log }, () => oldest.oldestMs());
  parts.ownRing = own;
  countMembers(metrics, own.ring, "ingester");
  /** How an operator wants it to end. */
  let ending: IngesterEnding | undefined;
  const service = new Service({
    name: "ingester",
    start: async (signal) => {
      await own.start();
      await ingester.start(signal);
      await own.join(signal);
    },
    run: (signal) => ingester.runUntil(signal),
    stop: async () => {
      await own.leave();
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
    routes: [
      ...operatorRoutes({ ingester, marker, stopIngester, endProcess }),
      ...ringRoutes({ paths: ["/ring"], title: "Ingester ring", ring: own.ring }),
    ],
  };
}
