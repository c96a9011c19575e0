export * from "./frontend.js";
export * from "./http/headers.js";
export * from "./http/pattern-routes.js";
export * from "./http/routes.js";
export { combineLimits, type QueryTenantLimits } from "./limits/limits.js";
export type { ResultStore, ResultStores } from "./results-cache/result-store.js";
export * from "./results-cache/store/memory-store.js";
export { RedisResultStore } from "./results-cache/store/redis-store.js";
export * from "./tail/tail-endpoints.js";
