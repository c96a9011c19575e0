import { type JobHandler, type JobResult, serveJobs } from "@skald/runtime";
import { scanJobs } from "@skald/scan";
import { counterPlaces, type ShareJob } from "./counting-job.js";

let counters: Int32Array | undefined;

// The scan jobs as they are, counting how often they look whether they were cancelled: once for each block.
serveJobs({
  ...Object.fromEntries(Object.entries(scanJobs()).map(([name, job]) => [name, counted(job)])),
  // Ends when all threads have it, so that none gets it twice.
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
});

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
