export type { CompactionThreads, DayRules } from "./compaction/compact-day.js";
export { Compactor, type CompactorDeps } from "./compactor.js";
export { DeletePass, DeletionLoop } from "./deletion/delete-pass.js";
export { DeleteRequests, type DeletionMode } from "./deletion/delete-requests.js";
export { LocalCopy, RequestStore } from "./deletion/request-store.js";
export { type DeleteRouteOptions, deleteRoutes } from "./http.js";
export { RemovalRules } from "./removal-rules.js";
