export * from "./frontend.js";
export * from "./http/headers.js";
export * from "./http/pattern-routes.js";
export * from "./http/routes.js";
export { combineLimits, type QueryTenantLimits } from "./limits/limits.js";
export * from "./tail/tail-endpoints.js";
