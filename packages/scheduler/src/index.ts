export * from "./fair-queue.js";
export { Scheduler, type SchedulerOptions } from "./scheduler.js";
export { type TakeCallsOptions, takeCalls } from "./take-calls.js";
