import { steadyClock } from "@skald/model";
import { CountingCatalog, RemoteScanner } from "@skald/scan";
import { SegmentCatalog } from "@skald/storage";
import { decodeIndex } from "../compaction-threads.js";
import type { BuiltModule, ModuleContext, Parts } from "../module.js";
import { buildObjectStore } from "../object-store.js";
import { timedCatalog } from "../store-metrics.js";

/** The object store, what is in it, and how that is scanned. */
export function buildStore(parts: Parts, { config, log, metrics }: ModuleContext): BuiltModule {
  const { scanner } = parts;
  const { store, locate, cache, service } = buildObjectStore({
    config,
    log: log.child({ component: "store" }),
    metrics,
    onDropped: (path) => parts.threads.forget(path),
  });
  parts.store = store;
  parts.locate = locate;
  const failures = metrics.counter("store_listing_failures_total", "Listings that failed.");
  const corrupt = metrics.counter("store_corrupt_indexes_total", "Damaged day indexes.");
  const catalog = new SegmentCatalog({
    ...{ store, locate, clock: steadyClock },
    decodeIndex: (name, bytes) => decodeIndex(parts.pool, name, bytes),
    onCorruptIndex: (error, key) => {
      corrupt.inc();
      log.error("a day index is damaged; the one before it is used", { key, error });
      parts.repairDay?.(key);
    },
    onListFailure: (error, prefix) => {
      failures.inc();
      log.warn("the store cannot be listed; an older listing still serves", { prefix, error });
    },
  });
  parts.segments = catalog;
  const counting = new CountingCatalog({
    catalog,
    countDay: (task, options) => parts.threads.countDay(task, options),
  });
  parts.ownCatalog = timedCatalog(counting, metrics);
  parts.catalog = parts.ownCatalog;
  if (cache !== undefined) parts.scanner = new RemoteScanner({ scanner, cache });
  return { service };
}
