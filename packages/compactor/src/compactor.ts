import type { Clock, SegmentLocation } from "@skald/model";
import { type Logger, type Metrics, NewerFiles, repeat } from "@skald/runtime";
import { tracedApart } from "@skald/runtime/tracing";
import { AskedTexts, type ObjectStore, parseDayIndexKey } from "@skald/storage";
import {
  type CompactionThreads,
  DayCompaction,
  type DayCompactionDeps,
  type DayRules,
  OtherWasFirst,
} from "./compaction/compact-day.js";
import { listTables, prefixOf, type Table, type TableChoice } from "./compaction/day-state.js";
import { planBounds } from "./compaction/plan.js";
import { WorkFiles } from "./compaction/segment-merge.js";
import type { CompactorConfig } from "./config.js";

export interface CompactorDeps {
  readonly config: CompactorConfig;
  readonly store: ObjectStore;
  /** Finds the bytes of a key. */
  readonly locate: (key: string) => SegmentLocation;
  readonly threads: CompactionThreads;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly rules?: DayRules | undefined;
  /** Whether this compactor works on a day; on all days when absent. */
  readonly owns?: (table: Table) => boolean;
  /** Called with the key of each deleted object. */
  readonly onDeleted?: (key: string) => void;
  readonly bounds?: Partial<DayCompactionDeps["bounds"]>;
}

/** How long after its end a day is merged for good: few rows come later. */
const settleMs = 2 * 3_600_000;
/** How long an ingester may be away and still come back with segments that were merged in the meantime. */
const rememberMs = 24 * 3_600_000;
/** A day that ended this long ago, and had nothing to do, is checked this rarely. */
const quietMs = 7 * 86_400_000;
const quietPauseMs = 6 * 3_600_000;
/** A day with a file that a later program wrote is checked this rarely. */
const newerPauseMs = 6 * 3_600_000;
const nsPerMs = 1_000_000n;

/**
 * Compacts the days of the store, the newest first: it merges small segments, drops duplicate rows, writes day indexes, and
 * deletes replaced segments. Any number of compactors may work on one store, each on the days that it owns. If two believe that they
 * own a day, the first one to write its index wins.
 */
export class Compactor {
  readonly #deps: CompactorDeps;
  readonly #work: WorkFiles;
  readonly #days: DayCompaction;
  readonly #choice: TableChoice;
  readonly #abort = new AbortController();
  /** When each quiet day was checked, by prefix. */
  readonly #seenMs = new Map<string, number>();
  /** When a file that a later program wrote was found, by prefix of the day. Such a day is left alone. */
  readonly #newerMs = new Map<string, number>();
  readonly #newerFiles: NewerFiles;
  /** The days in work, by prefix. Each resolves to whether it succeeded. */
  readonly #running = new Map<string, Promise<boolean>>();
  readonly #runs;
  readonly #races;
  #opened: Promise<void> | undefined;
  #loop: Promise<void> = Promise.resolve();

  constructor(deps: CompactorDeps) {
    const { metrics, config, store, locate, threads, clock, log, rules } = deps;
    this.#deps = deps;
    this.#newerFiles = new NewerFiles(log);
    this.#choice = { skipNewest: config.skip_latest_n_tables, most: config.tables_to_compact };
    this.#work = new WorkFiles(config.working_directory);
    // A run applies retention to the days that it works on, where that is enabled.
    this.#runs = [
      runMetrics(metrics, "boltdb_shipper_compact_tables", "_operation"),
      ...(config.retention_enabled ? [runMetrics(metrics, "compactor_apply_retention", "")] : []),
    ];
    this.#races = metrics.counter("compactor_races_total", "Days that another compactor was at.");
    const merges = metrics.counter("compactor_merges_total", "Merges that ended.");
    const inputs = metrics.counter("compactor_merged_segments_total", "Segments that were merged.");
    const bytes = metrics.counter("compactor_merged_bytes_total", "Bytes of lines merged.");
    const damaged = metrics.counter("compactor_corrupt_segments_total", "Segments left unmerged.");
    const deleted = metrics.counter("compactor_deleted_objects_total", "Objects deleted.");
    const asked = new AskedTexts({ store, clock });
    this.#days = new DayCompaction({
      askedOf: (tenant, options) => asked.mostAsked(tenant, options),
      fieldShare: config.field_columns_percent / 100,
      ...{ store, locate, threads, clock, log, rules, work: this.#work },
      bounds: {
        ...planBounds,
        ...{ settleMs, rememberMs, graceMs: config.retention_delete_delay },
        deletesAtOnce: config.retention_delete_worker_count,
        mergesAtOnce: config.max_compaction_parallelism,
        ...deps.bounds,
      },
      onMerged: (merge) => {
        merges.inc();
        inputs.inc(merge.inputs);
        bytes.inc(merge.bytes);
      },
      onDamaged: () => damaged.inc(),
      onDeleted: (key) => {
        deleted.inc();
        deps.onDeleted?.(key);
      },
    });
  }

  /** Starts to compact the store. */
  start(): void {
    const { compaction_interval: pauseMs } = this.#deps.config;
    const { signal } = this.#abort;
    const onError = (error: unknown) => this.#deps.log.error("a compaction failed", { error });
    this.#loop = repeat(() => this.runOnce(), { pauseMs, signal, onError });
  }

  /** Ends all work. Unfinished work is done again later. */
  async stop(): Promise<void> {
    this.#abort.abort();
    await this.#loop;
    await Promise.all(this.#running.values());
  }

  /** Works now on the day of a damaged index, named by its key, because its queries wait for it. Errors are logged. */
  async repair(indexKey: string): Promise<void> {
    const table = parseDayIndexKey(indexKey);
    if (table === undefined || this.#abort.signal.aborted || !this.#owns(table)) return;
    try {
      await this.#open();
      await this.#compact(table);
    } catch (error) {
      this.#deps.log.error("a damaged day index could not be looked at", { key: indexKey, error });
    }
  }

  /** Opens the work directory. The next call tries again if it fails. */
  async #open(): Promise<void> {
    this.#opened ??= this.#work.open();
    try {
      await this.#opened;
    } catch (error) {
      this.#opened = undefined;
      throw error;
    }
  }

  /** Works on all days once. Rejects when the store cannot be listed. Errors of a day are logged and counted. */
  async runOnce(): Promise<void> {
    const { config, store } = this.#deps;
    const { signal } = this.#abort;
    const start = performance.now();
    try {
      await this.#open();
      const tables = await listTables(store, this.#choice, signal);
      const due = tables.filter((table) => this.#isDue(table));
      let failed = 0;
      const next = async (): Promise<void> => {
        for (let table = due.shift(); table !== undefined; table = due.shift()) {
          if (signal.aborted) return;
          // Checked now, because the owner may have changed since the listing.
          if (!this.#owns(table)) continue;
          if (!(await this.#compact(table))) failed++;
        }
      };
      await Promise.all(Array.from({ length: config.max_compaction_parallelism }, next));
      for (const run of this.#runs) {
        run.operations.inc({ status: failed === 0 ? "success" : "failure" });
        run.seconds.set((performance.now() - start) / 1000);
        if (failed === 0) run.last.set(this.#deps.clock.nowMs() / 1000);
      }
    } catch (error) {
      if (signal.aborted) return;
      for (const run of this.#runs) run.operations.inc({ status: "failure" });
      throw error;
    }
  }

  /** Works on a day, unless that is already running. */
  #compact(table: Table): Promise<boolean> {
    const prefix = prefixOf(table);
    const running =
      this.#running.get(prefix) ??
      this.#compactDay(table).finally(() => this.#running.delete(prefix));
    this.#running.set(prefix, running);
    return running;
  }

  async #compactDay(table: Table): Promise<boolean> {
    const { log, clock } = this.#deps;
    const { signal } = this.#abort;
    const facts = { tenant: table.tenant, day: prefixOf(table) };
    const newerMs = this.#newerMs.get(facts.day) ?? Number.NEGATIVE_INFINITY;
    if (clock.nowMs() - newerMs < newerPauseMs) return false;
    try {
      const attributes = { tenant: table.tenant, "skald.day": facts.day };
      const asked = { signal, isOwn: () => this.#owns(table) };
      await tracedApart("compaction", { attributes }, () => this.#days.run(table, asked));
      this.#seenMs.set(prefixOf(table), clock.nowMs());
      return true;
    } catch (error) {
      if (signal.aborted) return true;
      if (error instanceof OtherWasFirst) {
        this.#races.inc();
        log.info("another compactor works on this day", facts);
        return true;
      }
      if (this.#newerFiles.tell(error)) {
        this.#newerMs.set(facts.day, clock.nowMs());
        return false;
      }
      log.error("compacting a day failed; it is tried again", { ...facts, error });
      return false;
    }
  }

  #owns(table: Table): boolean {
    return this.#deps.owns?.(table) ?? true;
  }

  #isDue(table: Table): boolean {
    if (this.#deps.rules?.isDue?.(table) === true) return true;
    const nowMs = this.#deps.clock.nowMs();
    const ageMs = nowMs - Number(table.baseNs / nsPerMs);
    const seenMs = this.#seenMs.get(prefixOf(table)) ?? Number.NEGATIVE_INFINITY;
    return ageMs < quietMs || nowMs - seenMs >= quietPauseMs;
  }
}

/** The metrics of runs over all tables, under the names that dashboards of compactors ask for. */
function runMetrics(metrics: Metrics, name: string, endOfLast: "_operation" | "") {
  const operations = metrics.counter(`${name}_operation_total`, "Runs over all tables.", [
    "status",
  ]);
  // A rate needs the series before its first failure.
  for (const status of ["success", "failure"]) operations.inc({ status }, 0);
  return {
    operations,
    seconds: metrics.gauge(
      `${name}_operation_duration_seconds`,
      "Time of the last run over all tables that ended.",
    ),
    last: metrics.gauge(
      `${name}${endOfLast}_last_successful_run_timestamp_seconds`,
      "When a run over all tables ended well, seconds since the epoch.",
    ),
  };
}
