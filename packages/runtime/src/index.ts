// Light on purpose: worker threads import this face. The parts that need a library have faces of their own:
// "@skald/runtime/log", "@skald/runtime/metrics" and "@skald/runtime/config".
export * from "./bounded-queue.js";
export * from "./buildinfo.js";
export * from "./deadline.js";
export type * from "./limits/limits.js";
export type * from "./limits/tenant-limits.js";
export type * from "./log.js";
export * from "./log-level.js";
export * from "./message.js";
export type * from "./metrics.js";
export * from "./repeat.js";
export * from "./retry.js";
export * from "./semaphore.js";
export * from "./service.js";
export * from "./service-group.js";
export * from "./sleep.js";
export * from "./worker-jobs.js";
export * from "./worker-pool.js";
