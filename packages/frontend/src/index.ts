export * from "./frontend.js";
export * from "./http/routes.js";
export type { QueryTenantLimits } from "./limits/limits.js";
