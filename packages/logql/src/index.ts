export type * from "./pipeline.js";
export type * from "./log-scan.js";
export type * from "./metric-scan.js";
export * from "./plan.js";
export type * from "./result.js";
