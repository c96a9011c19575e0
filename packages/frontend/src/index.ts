export * from "./frontend.js";
export { ClientQueries } from "./http/client-queries.js";
export {
  type Endpoint,
  type QueryEndpoint,
  queryEndpoints,
} from "./http/endpoints.js";
export { FrontendThread, type QueryJob } from "./http/query-job.js";
export { queryRequest, queryTenants } from "./http/query-request.js";
export * from "./http/routes.js";
export { combineLimits } from "./limits/limits.js";
export * from "./query-context.js";
export { queryLogger } from "./query-log.js";
export * from "./results-cache/memory-store.js";
export { RedisResultStore } from "./results-cache/redis-store.js";
export type { ResultStore, ResultStores } from "./results-cache/result-store.js";
export { RetriedCalls } from "./retried-calls.js";
export * from "./tail/tail-endpoints.js";
