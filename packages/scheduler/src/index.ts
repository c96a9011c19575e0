export * from "./fair-queue.js";
export { Scheduler, type SchedulerOptions } from "./scheduler.js";
export { LaneWidth, type TakeCallsOptions, takeCalls } from "./take-calls.js";
