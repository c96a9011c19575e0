export type { CompactionThreads } from "./compaction/compact-day.js";
export { Compactor } from "./compactor.js";
export { DeletePass, DeletionLoop } from "./deletion/delete-pass.js";
export { isFinished } from "./deletion/delete-request.js";
export { DeleteRequests } from "./deletion/delete-requests.js";
export { LocalCopy, RequestStore } from "./deletion/request-store.js";
export { deleteRoutes } from "./http.js";
export { RemovalRules } from "./removal-rules.js";
