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
import { type ErasedRows, type PatternOptions, PatternStore } from "./pattern-store.js";

interface PatternThreadDeps {
  /** A pool of one thread that serves `patternJobs`. */
  readonly pool: Pick<WorkerPool, "run" | "close">;
  readonly setup: PatternSetup;
  readonly savePeriodMs: number;
  /** Fields of a JSON line. The text of the first one present is mined. */
  readonly fieldsOf: (tenant: string) => readonly string[];
  /** The rows of a tenant that clients asked to delete, also those of requests that were finished a short time ago. */
  readonly erasedOf?: (tenant: string, options: CallOptions) => Promise<readonly ErasedRows[]>;
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
    const erased = await this.#erasedOf(lines.tenant, { signal });
    const job: LearnJob = { setup, lines, fields: fieldsOf(lines.tenant), erased };
    await pool.run<void>("learn", job, { lane: "background", signal });
    onLearnt(lines.ends.length, lines.ends.length * lines.weight);
  }

  async patterns(request: PatternsRequest, { signal }: CallOptions): Promise<FoundPatterns> {
    const { pool, setup } = this.#deps;
    const erased = await this.#erasedOf(request.tenant, { signal });
    const job: AskJob = { setup, request, erased };
    return pool.run<FoundPatterns>("patterns", job, { lane: "background", signal });
  }

  /** Forgets the patterns of streams that delete requests touch, in memory and in the file. */
  async erase(tenant: string, { signal }: CallOptions): Promise<void> {
    const { pool, setup } = this.#deps;
    const job: EraseJob = { setup, tenant, erased: await this.#erasedOf(tenant, { signal }) };
    await pool.run<void>("erase", job, { lane: "background", signal });
  }

  async #erasedOf(tenant: string, options: CallOptions): Promise<readonly ErasedRows[]> {
    return (await this.#deps.erasedOf?.(tenant, options)) ?? [];
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
  readonly erased: readonly ErasedRows[];
}

interface AskJob {
  readonly setup: PatternSetup;
  readonly request: PatternsRequest;
  readonly erased: readonly ErasedRows[];
}

interface EraseJob {
  readonly setup: PatternSetup;
  readonly tenant: string;
  readonly erased: readonly ErasedRows[];
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
  const save = (setup: PatternSetup) => {
    mkdirSync(dirname(setup.path), { recursive: true });
    savePatterns(storeOf(setup), setup.path);
  };
  /** A request is written through at once: the file must not outlive it. */
  const erase = ({ setup, tenant, erased }: EraseJob): PatternStore => {
    const patterns = storeOf(setup);
    if (patterns.erase(tenant, erased)) save(setup);
    return patterns;
  };
  return {
    learn: ({ setup, lines, fields, erased }: LearnJob) => {
      erase({ setup, tenant: lines.tenant, erased }).learn(lines, fields, erased);
      return { value: undefined };
    },
    patterns: ({ setup, request, erased }: AskJob) => ({
      value: erase({ setup, tenant: request.tenant, erased }).patterns(request),
    }),
    erase: (job: EraseJob) => {
      erase(job);
      return { value: undefined };
    },
    save: ({ setup }: { readonly setup: PatternSetup }) => {
      save(setup);
      return { value: undefined };
    },
  };
}
