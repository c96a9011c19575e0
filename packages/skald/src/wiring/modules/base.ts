import { availableParallelism } from "node:os";
import { Service, WorkerPool } from "@skald/runtime";
import { TenantLimits } from "@skald/runtime/config";
import { ScanPool } from "@skald/scan";
import { FairQueue } from "@skald/scheduler";
import { ignoredKeys } from "../../config/ignored-keys.js";
import type { Config } from "../../config/root.js";
import { ringRoutes } from "../../http/ring-routes.js";
import { tenantLimitsRoutes } from "../../http/tenant-routes.js";
import { threadScripts } from "../../thread-scripts.js";
import {
  type Builder,
  type BuiltModule,
  type ModuleContext,
  type Parts,
  tenancyOf,
} from "../module.js";
import { buildServiceRing, type RingBlock, type ServiceRings } from "../rings.js";

/** The limits of tenants, which may change while the process runs. */
export function buildLimits(parts: Parts, { config, log, metrics }: ModuleContext): BuiltModule {
  const { limits_config, runtime_config, tenant_limits_allow_publish: published } = config;
  const limits = new TenantLimits({
    ...{ limits: limits_config, ignored: ignoredKeys, log, metrics },
    files: runtime_config.file,
    periodMs: runtime_config.period,
  });
  parts.limits = limits;
  const limitsOf = (tenant: string) => limits.of(tenant);
  return {
    service: limits.service,
    routes: tenantLimitsRoutes({ ...tenancyOf(config), limitsOf, published }),
  };
}

/** Jobs that may wait for a thread; the next one is refused. */
export const maxQueuedJobs = 100_000;
/** Idle threads keep this much memory, because scans use again what they read before. */
const maxKeptMib = 128;

/**
 * The threads that decode, seal and scan. Small scans have a thread of their own, and so has decoding: neither waits for large
 * scans, and many large pushes delay no query. In each lane tenants take turns.
 */
export function buildPool(parts: Parts, { config, log, metrics }: ModuleContext): BuiltModule {
  const lost = metrics.counter("worker_threads_lost_total", "Threads that died and were replaced.");
  const maxLevels = config.query_scheduler.max_queue_hierarchy_levels;
  const pool = new WorkerPool({
    url: threadScripts.jobs,
    size: config.server.worker_threads || availableParallelism(),
    ...{ ownThreads: ["urgent", "decode"], maxKeptMib, maxQueued: maxQueuedJobs, lazy: true },
    queues: {
      urgent: new FairQueue({ maxLevels }),
      decode: new FairQueue({ maxLevels }),
      query: new FairQueue({ maxLevels }),
    },
    onThreadLost: (error) => {
      lost.inc();
      log.error("a worker thread died; another takes its place", { error });
    },
  });
  parts.pool = pool;
  parts.threads = new ScanPool(pool);
  parts.scanner = parts.threads;
  return { service: new Service({ name: "worker-pool", stop: () => pool.close() }) };
}

export const compactorRing = serviceRing("compactor-ring", {
  ...{ name: "compactor", title: "Compactor ring", path: "/compactor/ring" },
  blockOf: ({ compactor }) => compactor.compactor_ring,
});
export const rulerRing = serviceRing("ruler-ring", {
  ...{ name: "ruler", title: "Ruler ring", path: "/ruler/ring" },
  blockOf: ({ ruler }) => ruler.ring,
});
export const schedulerRing = serviceRing("scheduler-ring", {
  ...{ name: "scheduler", title: "Scheduler ring", path: "/scheduler/ring" },
  blockOf: ({ query_scheduler }) => query_scheduler.scheduler_ring,
});
export const indexGatewayRing = serviceRing("index-gateway-ring", {
  ...{ name: "index-gateway", title: "Index gateway ring", path: "/indexgateway/ring" },
  blockOf: ({ index_gateway }) => index_gateway.ring,
});

interface ServiceRing {
  /** The name of the ring in its store. */
  readonly name: string;
  readonly title: string;
  readonly path: string;
  readonly blockOf: (config: Config) => RingBlock;
}

/** The ring through which the instances of a service find each other, and its page. */
function serviceRing(
  module: keyof ServiceRings,
  { name, title, path, blockOf }: ServiceRing,
): Builder {
  return (parts, context) => {
    const own = buildServiceRing(name, blockOf(context.config), context);
    parts.serviceRings = { ...parts.serviceRings, [module]: own };
    const service = new Service({
      name: module,
      start: async (signal) => {
        await own.start();
        await own.join(signal);
      },
      stop: () => own.stop(),
    });
    return {
      service,
      unready: () => own.ring.unready,
      routes: ringRoutes({ path, title, ring: own.ring }),
    };
  };
}
