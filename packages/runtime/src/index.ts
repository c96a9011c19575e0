// Worker threads import this face, so it loads no library. The parts that need one have faces of their own:
// "@skald/runtime/log", "@skald/runtime/metrics", "@skald/runtime/config" and "@skald/runtime/yaml".

export * from "./buildinfo.js";
export { IdleCollection } from "./collection.js";
export * from "./concurrency.js";
export * from "./ledger.js";

export * from "./logger.js";
export type * from "./metrics.js";
export * from "./service.js";
export { markWork, StretchRecorder } from "./stretches.js";
export * from "./waiting.js";
export {
  helpersYield,
  type JobContext,
  type JobHandler,
  type JobResult,
  serveJobs,
} from "./workers/jobs.js";
export * from "./workers/memory-budget.js";
export * from "./workers/pool.js";
export type {
  HostFunction,
  JobCost,
  JobOptions,
  JobQueue,
  JobShare,
  Lane,
  WaitingJob,
} from "./workers/seat.js";
