export * from "./fair-queue.js";
export { Scheduler } from "./scheduler.js";
export { LaneWidth, takeCalls } from "./take-calls.js";
