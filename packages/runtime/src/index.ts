// Light on purpose: worker threads import this face. The parts that need a library have faces of their own:
// "@skald/runtime/log", "@skald/runtime/metrics", "@skald/runtime/config" and "@skald/runtime/yaml".
export * from "./async/concurrent.js";
export * from "./async/deadline.js";
export * from "./async/repeat.js";
export * from "./async/retry.js";
export * from "./async/semaphore.js";
export * from "./async/sleep.js";
export * from "./buildinfo.js";
export * from "./log/level.js";
export type * from "./log/log.js";
export * from "./log/message.js";
export * from "./log/newer-files.js";
export type * from "./metrics.js";
export * from "./service/group.js";
export * from "./service/service.js";
export * from "./workers/jobs.js";
export * from "./workers/memory-budget.js";
export * from "./workers/pool.js";
export type {
  HostFunction,
  JobOptions,
  JobQueue,
  JobShare,
  Lane,
  WaitingJob,
} from "./workers/waiting-jobs.js";
