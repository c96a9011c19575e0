import type { WorkerPool } from "@skald/runtime";
import { type RuleJobName, RuleTexts, ruleJobs } from "../rules/rule-texts.js";

/** Reads and writes rules in the thread of the test; `jobs` gets the name of each job. */
export function testTexts(jobs: string[] = []): RuleTexts {
  const run = async (name: string, payload: unknown): Promise<unknown> => {
    jobs.push(name);
    return ruleJobs[name as RuleJobName](payload as never).value;
  };
  return new RuleTexts({ run: run as WorkerPool["run"] });
}
