import { availableParallelism } from "node:os";
import { Service, WorkerPool } from "@skald/runtime";
import { TenantLimits } from "@skald/runtime/config";
import { ScanPool } from "@skald/scan";
import { FairQueue } from "@skald/scheduler";
import { ignoredKeys } from "../../config/ignored-keys.js";
import { tenantLimitsRoutes } from "../../http/tenant-routes.js";
import { threadScripts } from "../../thread-scripts.js";
import { type BuiltModule, type ModuleContext, type Parts, tenancyOf } from "../module.js";

/** Jobs that may wait for a thread before queries are refused. */
export const maxQueuedJobs = 100_000;
/** Memory that idle threads keep: scans have use for what they read before. */
const maxKeptMib = 128;
/** Scans of small queries, and decoding of pushes, take turns on one thread. */
const urgentScans = 1;

/** The limits of tenants, which may change while the process runs. */
export function buildLimits(parts: Parts, { config, log, metrics }: ModuleContext): BuiltModule {
  parts.limits = new TenantLimits({
    limits: config.limits_config,
    files: config.runtime_config.file,
    ignored: ignoredKeys,
    periodMs: config.runtime_config.period,
    log,
    metrics,
  });
  const published = config.tenant_limits_allow_publish;
  const limitsOf = (tenant: string) => parts.limits.of(tenant);
  return {
    service: parts.limits.service,
    routes: tenantLimitsRoutes({ ...tenancyOf(config), limitsOf, published }),
  };
}

/** The threads that decode, seal and scan. */
export function buildPool(parts: Parts, { config, log, metrics }: ModuleContext): BuiltModule {
  const { worker_threads } = config.server;
  const lost = metrics.counter("worker_threads_lost_total", "Threads that died and were replaced.");
  const pool = new WorkerPool({
    url: threadScripts.jobs,
    size: worker_threads > 0 ? worker_threads : availableParallelism(),
    urgentJobs: urgentScans,
    lazy: true,
    maxQueued: maxQueuedJobs,
    maxKeptMib: maxKeptMib,
    queues: {
      query: new FairQueue({ maxLevels: config.query_scheduler.max_queue_hierarchy_levels }),
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
