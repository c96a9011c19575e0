import type { CallOptions, Pattern, PatternIngester, PatternsRequest } from "@skald/contracts";
import { repeat, type WorkerPool } from "@skald/runtime";
import type { FreshRows } from "@skald/scan";
import type { PatternSetup } from "./jobs.js";

export interface PatternThreadDeps {
  /** Of one thread, which serves `patternJobs`. */
  readonly pool: Pick<WorkerPool, "run" | "close">;
  readonly setup: PatternSetup;
  readonly savePeriodMs: number;
  /** Told of the lines that were looked at, and of those that they stand for. */
  readonly onLearnt: (looked: number, rows: number) => void;
  readonly onError: (error: unknown) => void;
}

/** Has the patterns of new lines found by a thread of their own, and saves them now and then. */
export class PatternThread implements PatternIngester {
  readonly #deps: PatternThreadDeps;
  readonly #stopped = new AbortController();
  #saving: Promise<void> = Promise.resolve();

  constructor(deps: PatternThreadDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#saving = repeat(() => this.save(), {
      pauseMs: this.#deps.savePeriodMs,
      signal: this.#stopped.signal,
      onError: this.#deps.onError,
    });
  }

  /** Saves what there is, and ends the thread. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#saving;
    await this.save().catch(this.#deps.onError);
    await this.#deps.pool.close();
  }

  /** Looks at new rows; of a JSON line at the first of the fields that it has. */
  async learn(rows: FreshRows, fields: readonly string[]): Promise<void> {
    const { pool, setup, onLearnt } = this.#deps;
    const looked = await pool.run<number>("learn", { setup, rows, fields }, { lane: "background" });
    onLearnt(looked, rows.rowCount);
  }

  patterns(request: PatternsRequest, { signal }: CallOptions): Promise<readonly Pattern[]> {
    const { pool, setup } = this.#deps;
    return pool.run<Pattern[]>("patterns", { setup, request }, { lane: "background", signal });
  }

  async save(): Promise<void> {
    const { pool, setup } = this.#deps;
    await pool.run<void>("save", { setup }, { lane: "background" });
  }
}
