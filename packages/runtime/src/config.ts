// The face "@skald/runtime/config": how keys are declared, read, checked and printed.

export * from "./config/blocks.js";
export * as field from "./config/field.js";
export * from "./config/limits.js";
export * from "./config/load-settings.js";
export * from "./config/print.js";
export * from "./config/settings.js";
export * from "./config/tenant-limits.js";
export { IgnoredKeys, type IgnoredRow, nearest } from "./config/undeclared.js";
export { formatDurationMs, parseBoolean } from "./config/value.js";
