import type { LeafPlan, LogPartial, LogPlan, MetricPartial } from "@skald/logql";
import type { SourceRef } from "@skald/model";
import type { WorkerPool } from "@skald/runtime";
import { LRUCache } from "lru-cache";
import { type Exclusions, exclusionBytes, shareExclusions, uniteExclusions } from "./exclusions.js";
import type { ScanOutcome, ScanTask } from "./scan-task.js";
import type { TimeSpan } from "./scan-view.js";
import type { StreamTask } from "./stream-scan.js";

/** What a querier asks of the threads that read sources. Every call ends soon after its signal. */
export interface Scanner {
  /** Threads that scan at the same time. */
  readonly width: number;
  scanMetric(task: ScanTask<LeafPlan>, signal: AbortSignal): Promise<ScanOutcome<MetricPartial>>;
  scanLog(task: ScanTask<LogPlan>, signal: AbortSignal): Promise<ScanOutcome<LogPartial>>;
  /** Bytes of lines that a scan may have to read, from headers. */
  measure(task: ScanTask, signal: AbortSignal): Promise<number>;
  /** Canonical texts of matching streams, each once. */
  streams(task: StreamTask, signal: AbortSignal): Promise<readonly string[]>;
  /** Rows of `newer` that any of `older` has too, in the span of the query at least. */
  duplicates(task: DuplicateTask, signal: AbortSignal): Promise<Exclusions>;
}

export interface DuplicateTask {
  readonly newer: SourceRef;
  readonly older: readonly SourceRef[];
  /** Rows outside do not matter; without it all rows do. */
  readonly span?: TimeSpan | undefined;
}

/** Duplicates of pairs of segments that are remembered: segments never change, so neither do they. */
const maxRememberedBytes = 64 * 1024 * 1024;

/** Scans on the worker threads of this process. */
export class ScanPool implements Scanner {
  readonly #pool: Pick<WorkerPool, "run" | "size">;
  readonly #exclusions = new LRUCache<string, Exclusions>({
    maxSize: maxRememberedBytes,
    sizeCalculation: exclusionBytes,
  });

  constructor(pool: Pick<WorkerPool, "run" | "size">) {
    this.#pool = pool;
  }

  get width(): number {
    return this.#pool.size;
  }

  scanMetric(task: ScanTask<LeafPlan>, signal: AbortSignal): Promise<ScanOutcome<MetricPartial>> {
    return this.#run("scan_metric", task, signal);
  }

  scanLog(task: ScanTask<LogPlan>, signal: AbortSignal): Promise<ScanOutcome<LogPartial>> {
    return this.#run("scan_log", task, signal);
  }

  measure(task: ScanTask, signal: AbortSignal): Promise<number> {
    return this.#run("measure", task, signal);
  }

  streams(task: StreamTask, signal: AbortSignal): Promise<readonly string[]> {
    return this.#run("streams", task, signal);
  }

  async duplicates(task: DuplicateTask, signal: AbortSignal): Promise<Exclusions> {
    const { newer, older } = task;
    if (newer.kind === "head") {
      return uniteExclusions(await this.#run<Exclusions[]>("duplicates", task, signal));
    }
    const keys = older.map((ref) => `${ref.id}|${newer.id}`);
    const all = keys.join();
    const united = this.#exclusions.get(all);
    if (united !== undefined) return united;
    const known = keys.map((key) => this.#exclusions.get(key));
    const missing = older.filter((_, i) => known[i] === undefined);
    if (missing.length > 0) {
      const asked: DuplicateTask = { newer, older: missing };
      const found = await this.#run<Exclusions[]>("duplicates", asked, signal);
      for (const [i, key] of keys.entries()) {
        if (known[i] !== undefined) continue;
        known[i] = found.shift() as Exclusions;
        this.#exclusions.set(key, known[i]);
      }
    }
    // Shared memory: the same rows go to a thread with every scan of the segment.
    const result = shareExclusions(uniteExclusions(known.filter((part) => part !== undefined)));
    this.#exclusions.set(all, result);
    return result;
  }

  #run<T>(name: string, payload: unknown, signal: AbortSignal): Promise<T> {
    return this.#pool.run(name, payload, { lane: "interactive", signal });
  }
}
