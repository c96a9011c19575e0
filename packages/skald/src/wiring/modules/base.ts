import { availableParallelism } from "node:os";
import {
  type JobCost,
  Ledger,
  type Metrics,
  memoryBytes,
  Service,
  WorkerPool,
} from "@skald/runtime";
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

/**
 * The threads that decode, seal and scan. Small scans, tails and decoding have a thread of their own each, and where there are several for
 * all, one of them scans only: neither large pushes nor merges keep queries waiting. While there are no queries it seals heads, too. In
 * each lane tenants take turns.
 */
export function buildPool(parts: Parts, { config, log, metrics }: ModuleContext): BuiltModule {
  const lost = metrics.counter("worker_threads_lost_total", "Threads that died and were replaced.");
  const maxLevels = config.query_scheduler.max_queue_hierarchy_levels;
  const ledger = new Ledger(pushBytesOf(config), () => pool.resume());
  const pool: WorkerPool = new WorkerPool({
    url: threadScripts.jobs,
    size: config.server.worker_threads || availableParallelism(),
    ...{
      ownThreads: ["urgent", "tail", "decode"],
      longLanes: ["decode", "background"],
      spareLanes: ["seal"],
      maxQueued: maxQueuedJobs,
      lazy: true,
    },
    queues: {
      urgent: new FairQueue({ maxLevels }),
      decode: new FairQueue({ maxLevels, isHeld: () => ledger.isScarce }),
      query: new FairQueue({ maxLevels }),
    },
    onUsed: countCosts(metrics),
    onThreadLost: (error) => {
      lost.inc();
      log.error("a worker thread died; another takes its place", { error });
    },
  });
  parts.ledger = ledger;
  const held = "Memory that pushes hold: bodies as they arrived, and decoded ones.";
  metrics.gaugesOf("distributor_push_bytes", held, ["tenant", "kind"], () => ledger.holdings());
  parts.pool = pool;
  parts.threads = new ScanPool(pool);
  parts.scanner = parts.threads;
  const service = new Service({ name: "worker-pool", stop: () => pool.close() });
  return { service, warm: () => pool.warm() };
}

/** Counts what the jobs of each tenant take of the threads. */
export function countCosts(metrics: Metrics): (used: JobCost) => void {
  const names = ["tenant"];
  const cpu = metrics.counter(
    "tenant_thread_cpu_seconds_total",
    "CPU time of threads that decoded, scanned and answered for a tenant.",
    names,
  );
  const queue = metrics.counter(
    "tenant_thread_queue_seconds_total",
    "Time that jobs of a tenant waited for a thread.",
    names,
  );
  return ({ tenant, cpuMs, queueMs }) => {
    cpu.inc({ tenant }, cpuMs / 1000);
    queue.inc({ tenant }, queueMs / 1000);
  };
}

/** What pushes may hold when nobody says: a part of the memory, up to a bound. */
const shareOfPushes = 8;
const maxPushBytes = 384 * 1024 * 1024;

function pushBytesOf({ distributor }: Config): number {
  const { max_inflight_bytes, max_recv_msg_size } = distributor;
  if (max_inflight_bytes > 0) return max_inflight_bytes;
  return Math.max(max_recv_msg_size, Math.min(maxPushBytes, memoryBytes() / shareOfPushes));
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
