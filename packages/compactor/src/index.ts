export type { CompactionThreads, DayRules } from "./compaction/compact-day.js";
export { Compactor, type CompactorDeps } from "./compactor.js";
