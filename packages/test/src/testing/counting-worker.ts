import { isMainThread } from "node:worker_threads";
import { type JobHandler, type JobResult, serveJobs } from "@skald/runtime";
import { scanJobs } from "@skald/scan";

/** Places in the shared words that the job `share` gives to every thread of the pool. */
export const counterPlaces = { threads: 0, checks: 1 } as const;

export interface ShareJob {
  /** Words in shared memory, by `counterPlaces`. */
  readonly counters: Int32Array;
  readonly threads: number;
}

let counters: Int32Array | undefined;

// The scan jobs, with a count of how often they check whether they were cancelled: once for each block.
const jobs: Readonly<Record<string, JobHandler>> = {
  ...Object.fromEntries(Object.entries(scanJobs()).map(([name, job]) => [name, counted(job)])),
  // The job ends when all threads have it, so that no thread gets it twice.
  share: (job: ShareJob): JobResult => {
    counters = job.counters;
    Atomics.add(counters, counterPlaces.threads, 1);
    Atomics.notify(counters, counterPlaces.threads);
    for (let there = 0; there < job.threads; ) {
      there = Atomics.load(counters, counterPlaces.threads);
      if (there < job.threads) Atomics.wait(counters, counterPlaces.threads, there);
    }
    return { value: undefined };
  },
};
// A test imports this file too, for the names above.
if (!isMainThread) serveJobs(jobs);

function counted(job: JobHandler): JobHandler {
  return (payload, context) =>
    job(payload, {
      ...context,
      check: () => {
        if (counters !== undefined) Atomics.add(counters, counterPlaces.checks, 1);
        context.check();
      },
    });
}
