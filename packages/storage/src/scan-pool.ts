import type { LeafPlan, LogPartial, LogPlan, MetricPartial } from "@skald/logql";
import type { SourceRef } from "@skald/model";
import type { WorkerPool } from "@skald/runtime";
import { LRUCache } from "lru-cache";
import type { Exclusions } from "./duplicates.js";
import type { ScanOutcome, ScanTask } from "./scan.js";
import type { StreamTask } from "./stream-scan.js";

/** Pairs of segments whose duplicates are remembered; segments never change, so neither does the answer. */
const maxRememberedPairs = 50_000;

/** Scans on the worker threads of this process. */
export class ScanPool {
  readonly #pool: WorkerPool;
  readonly #exclusions = new LRUCache<string, Promise<Exclusions>>({ max: maxRememberedPairs });

  constructor(pool: WorkerPool) {
    this.#pool = pool;
  }

  /** Threads that scan at the same time. */
  get width(): number {
    return this.#pool.size;
  }

  scanMetric(
    task: ScanTask & { plan: LeafPlan },
    signal: AbortSignal,
  ): Promise<ScanOutcome<MetricPartial>> {
    return this.#pool.run("scan_metric", task, { lane: "interactive", signal });
  }

  scanLog(
    task: ScanTask & { plan: LogPlan },
    signal: AbortSignal,
  ): Promise<ScanOutcome<LogPartial>> {
    return this.#pool.run("scan_log", task, { lane: "interactive", signal });
  }

  /** Canonical texts of matching streams, each once. */
  streams(task: StreamTask, signal: AbortSignal): Promise<readonly string[]> {
    return this.#pool.run("streams", task, { lane: "interactive", signal });
  }

  /** Rows of `newer` that `older` has too. */
  duplicates(older: SourceRef, newer: SourceRef, signal: AbortSignal): Promise<Exclusions> {
    if (older.kind === "head" || newer.kind === "head")
      return this.#findDuplicates(older, newer, signal);
    const key = `${older.id}|${newer.id}`;
    const known = this.#exclusions.get(key);
    if (known !== undefined) return known;
    // Not cancelled with the query: the next one wants the answer too.
    const finding = this.#findDuplicates(older, newer);
    this.#exclusions.set(key, finding);
    finding.catch(() => this.#exclusions.delete(key));
    return finding;
  }

  #findDuplicates(older: SourceRef, newer: SourceRef, signal?: AbortSignal): Promise<Exclusions> {
    const options = { lane: "interactive" as const };
    return this.#pool.run(
      "duplicates",
      { older, newer },
      signal === undefined ? options : { ...options, signal },
    );
  }
}
