export * from "./backend.js";
export * from "./frontend.js";
export * from "./http.js";
export type { QueryTenantLimits } from "./limits.js";
