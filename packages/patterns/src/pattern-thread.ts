import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import type {
  CallOptions,
  FoundPatterns,
  PatternIngester,
  PatternsRequest,
  SampledLines,
} from "@skald/contracts";
import { type JobHandler, repeat, type WorkerPool } from "@skald/runtime";
import { loadPatterns, refuseNewerPatterns, savePatterns } from "./pattern-file.js";
import { type PatternOptions, PatternStore } from "./pattern-store.js";

interface PatternThreadDeps {
  /** A pool of one thread that serves `patternJobs`. */
  readonly pool: Pick<WorkerPool, "run" | "close">;
  readonly setup: PatternSetup;
  readonly savePeriodMs: number;
  /** Fields of a JSON line. The text of the first one present is mined. */
  readonly fieldsOf: (tenant: string) => readonly string[];
  /** Called with the number of lines learnt from, and of lines that they stand for. */
  readonly onLearnt: (looked: number, lines: number) => void;
  readonly onError: (error: unknown) => void;
}

/** Finds the patterns of new lines on a thread of their own, and saves them from time to time. */
export class PatternThread implements PatternIngester {
  readonly #deps: PatternThreadDeps;
  readonly #stopped = new AbortController();
  #saving: Promise<void> = Promise.resolve();

  constructor(deps: PatternThreadDeps) {
    this.#deps = deps;
  }

  /** Throws `newer_version` when a later program saved the patterns. */
  start(): void {
    refuseNewerPatterns(this.#deps.setup.path);
    this.#saving = repeat(() => this.save(), {
      pauseMs: this.#deps.savePeriodMs,
      signal: this.#stopped.signal,
      onError: this.#deps.onError,
    });
  }

  /** Saves the patterns, and ends the thread. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#saving;
    await this.save().catch(this.#deps.onError);
    await this.#deps.pool.close();
  }

  async learn(lines: SampledLines, { signal }: CallOptions): Promise<void> {
    const { fieldsOf, onLearnt, pool, setup } = this.#deps;
    const job = { setup, lines, fields: fieldsOf(lines.tenant) };
    await pool.run<void>("learn", job, { lane: "background", signal });
    onLearnt(lines.ends.length, lines.ends.length * lines.weight);
  }

  patterns(request: PatternsRequest, { signal }: CallOptions): Promise<FoundPatterns> {
    const { pool, setup } = this.#deps;
    return pool.run<FoundPatterns>("patterns", { setup, request }, { lane: "background", signal });
  }

  async save(): Promise<void> {
    const { pool, setup } = this.#deps;
    await pool.run<void>("save", { setup }, { lane: "background" });
  }
}

/** Part of each job, so that a thread that replaces another one finds the saved patterns. */
export interface PatternSetup {
  readonly path: string;
  readonly options: PatternOptions;
}

interface LearnJob {
  readonly setup: PatternSetup;
  readonly lines: SampledLines;
  readonly fields: readonly string[];
}

/** The jobs of `PatternThread`, for the one thread that holds all patterns. */
export function patternJobs(): Record<string, JobHandler> {
  let store: PatternStore | undefined;
  const storeOf = ({ path, options }: PatternSetup): PatternStore => {
    if (store !== undefined) return store;
    const loaded = new PatternStore(options);
    loadPatterns(loaded, path);
    store = loaded;
    return store;
  };
  return {
    learn: ({ setup, lines, fields }: LearnJob) => {
      storeOf(setup).learn(lines, fields);
      return { value: undefined };
    },
    patterns: (job: { readonly setup: PatternSetup; readonly request: PatternsRequest }) => ({
      value: storeOf(job.setup).patterns(job.request),
    }),
    save: ({ setup }: { readonly setup: PatternSetup }) => {
      mkdirSync(dirname(setup.path), { recursive: true });
      savePatterns(storeOf(setup), setup.path);
      return { value: undefined };
    },
  };
}
