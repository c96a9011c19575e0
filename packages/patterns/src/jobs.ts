import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import type { PatternsRequest, SampledLines } from "@skald/contracts";
import type { JobHandler } from "@skald/runtime";
import { loadPatterns, savePatterns } from "./pattern-file.js";
import { type PatternOptions, PatternStore } from "./pattern-store.js";

/** What each job brings along, so that a thread that takes the place of another finds what that has saved. */
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
