import { Compactor } from "@skald/compactor";
import { systemClock } from "@skald/model";
import { Service } from "@skald/runtime";
import { compactionThreads } from "../compaction-threads.js";
import type { BuiltModule, ModuleContext, Parts } from "../module.js";

/** Merges what ingesters stored, and removes what is to go. */
export function buildCompactor(parts: Parts, { config, log, metrics }: ModuleContext): BuiltModule {
  const { store, locate, pool, removalRules, serviceRings, threads: scans } = parts;
  const { threads, close } = compactionThreads({
    size: config.compactor.max_compaction_parallelism,
    isBusy: () => pool.busy > 0,
    log,
  });
  const compactor = new Compactor({
    ...{ store, locate, threads, metrics, config: config.compactor, clock: systemClock },
    log: log.child({ component: "compactor" }),
    owns: ({ tenant, baseNs }) =>
      serviceRings?.["compactor-ring"]?.owns([tenant, String(baseNs)]) ?? true,
    onDeleted: (key) => {
      const location = locate(key);
      if (location.kind === "file") scans.forget(location.path);
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
