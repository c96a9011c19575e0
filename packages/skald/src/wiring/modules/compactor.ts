import { performance } from "node:perf_hooks";
import { type CompactionThreads, Compactor } from "@skald/compactor";
import { turnCall } from "@skald/compactor/jobs";
import { systemClock } from "@skald/model";
import { type HostFunction, Service, sleep, WorkerPool } from "@skald/runtime";
import { threadScripts } from "../../thread-scripts.js";
import type { BuiltModule, ModuleContext, Parts } from "../module.js";

/** Merges the segments that ingesters stored, and removes those that are to go. */
export function buildCompactor(parts: Parts, context: ModuleContext): BuiltModule {
  const { config, log, metrics } = context;
  const { store, locate, removalRules, serviceRings, threads: scans } = parts;
  const { threads, close } = compactionThreads(parts, context);
  const compactor = new Compactor({
    ...{ store, locate, threads, metrics, config: config.compactor, clock: systemClock },
    log: log.child({ component: "compactor" }),
    owns: ({ tenant, baseNs }) =>
      serviceRings?.["compactor-ring"]?.owns([tenant, String(baseNs)]) ?? true,
    onDeleted: (key) => {
      const location = locate(key);
      if (location.kind === "file") scans.forget(location.path);
      // Delete requests look again at what is left here by an error.
      else parts.cache?.drop(key).catch(() => undefined);
    },
    rules: removalRules,
  });
  parts.repairDay = (indexKey) => void compactor.repair(indexKey);
  const service = new Service({
    name: "compactor",
    start: () => compactor.start(),
    stop: async () => {
      await compactor.stop();
      await close();
    },
  });
  return { service };
}

const maxQueued = 10_000;

/** Merges have threads of their own: one that waits for queries and pushes holds up nobody. */
function compactionThreads(
  { pool: others }: Parts,
  { config, log }: ModuleContext,
): { readonly threads: CompactionThreads; readonly close: () => Promise<void> } {
  const pool = new WorkerPool({
    url: threadScripts.jobs,
    size: config.compactor.max_compaction_parallelism,
    ...{ maxQueued, lazy: true },
    onThreadLost: (error) => log.error("a thread of the compactor died", { error }),
  });
  const host = { [turnCall]: waitForOthers(() => others.busy > 0) };
  const run = <T>(name: string, payload: unknown, signal?: AbortSignal) =>
    pool.run<T>(name, payload, {
      ...{ lane: "background", host },
      ...(signal === undefined ? {} : { signal }),
    });
  return {
    threads: {
      merge: (job, { signal }) => run("merge_segments", job, signal),
      edit: (change, { signal }) => run("edit_day", change, signal),
      open: (name, bytes) => run("open_day", { name, bytes }),
    },
    close: () => pool.close(),
  };
}

/** A merge waits for others no longer than this, so that it ends under any load. */
const maxWaitMs = 1000;
const waitMs = 20;
/** Above this share of its time the main thread is busy with pushes, which need the processors. */
const maxMainShare = 0.5;

/** Answers when neither queries nor pushes need the processors, or after a second. */
function waitForOthers(isQuerying: () => boolean): HostFunction {
  let last = performance.eventLoopUtilization();
  const isMainBusy = (): boolean => {
    const { utilization } = performance.eventLoopUtilization(last);
    last = performance.eventLoopUtilization();
    return utilization > maxMainShare;
  };
  return async (_, { signal }) => {
    for (let waited = 0; waited < maxWaitMs && (isQuerying() || isMainBusy()); waited += waitMs) {
      await sleep(waitMs, signal);
    }
    return { value: undefined };
  };
}
