import type {
  DuplicateTask,
  EncodedOutcome,
  RowMask,
  Scanner,
  ScanOptions,
  ScanPlan,
  ScanTask,
  StreamTask,
} from "@skald/contracts";
import type { WorkerPool } from "@skald/runtime";
import type { LocalRef } from "@skald/storage";
import { LRUCache } from "lru-cache";
import { maskBytes, shareMask, uniteMasks } from "./dedup/row-mask.js";

/** Scans of queries that read no more than this do not wait for those of larger ones. */
export const urgentBytes = 8 * 1024 * 1024;

/** Duplicates of pairs of segments that are remembered: segments never change, so neither do they. */
const maxRememberedBytes = 64 * 1024 * 1024;

/** Scans on the worker threads of this process. */
export class ScanPool implements Scanner<LocalRef> {
  readonly #pool: Pick<WorkerPool, "run" | "broadcast">;
  readonly #masks = new LRUCache<string, RowMask>({
    maxSize: maxRememberedBytes,
    sizeCalculation: maskBytes,
  });

  constructor(pool: Pick<WorkerPool, "run" | "broadcast">) {
    this.#pool = pool;
  }

  scan(task: ScanTask<ScanPlan, LocalRef>, options: ScanOptions): Promise<EncodedOutcome> {
    return this.#run("log" in task.plan ? "scan_log" : "scan_metric", task, options);
  }

  measure(task: ScanTask<ScanPlan, LocalRef>, options: ScanOptions): Promise<number> {
    return this.#run("measure", task, options);
  }

  streams(task: StreamTask<LocalRef>, options: ScanOptions): Promise<readonly string[]> {
    return this.#run("streams", task, options);
  }

  async duplicates(task: DuplicateTask<LocalRef>, options: ScanOptions): Promise<RowMask> {
    const { newer, older } = task;
    if (newer.kind === "head") {
      return uniteMasks(await this.#run<RowMask[]>("duplicates", task, options));
    }
    const keys = older.map((ref) => `${ref.id}|${newer.id}`);
    const all = keys.join();
    const united = this.#masks.get(all);
    if (united !== undefined) return united;
    const known = keys.map((key) => this.#masks.get(key));
    const missing = older.filter((_, i) => known[i] === undefined);
    if (missing.length > 0) {
      const asked: DuplicateTask<LocalRef> = { newer, older: missing };
      const found = await this.#run<RowMask[]>("duplicates", asked, options);
      for (const [i, key] of keys.entries()) {
        if (known[i] !== undefined) continue;
        known[i] = found.shift() as RowMask;
        this.#masks.set(key, known[i]);
      }
    }
    // Shared memory: the same rows go to a thread with every scan of the segment.
    const result = shareMask(uniteMasks(known.filter((part) => part !== undefined)));
    this.#masks.set(all, result);
    return result;
  }

  /** Has every thread close the file of a segment that was deleted: until then it takes a descriptor and its place on disk. */
  forget(path: string): void {
    this.#pool.broadcast("forget", { path });
  }

  #run<T>(name: string, payload: unknown, { signal, share }: ScanOptions): Promise<T> {
    return this.#pool.run(name, payload, {
      lane: share.cost <= urgentBytes ? "urgent" : "query",
      share,
      signal,
    });
  }
}
