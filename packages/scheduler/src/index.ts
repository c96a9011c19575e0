export * from "./fair-queue.js";
export { LaneWidth } from "./lane-width.js";
export { Scheduler, type SchedulerOptions } from "./scheduler.js";
export { type TakeCallsOptions, takeCalls } from "./take-calls.js";
