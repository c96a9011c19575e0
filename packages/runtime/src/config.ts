// The face "@skald/runtime/config": how keys are declared, read, checked and printed.

export * as field from "./config/field.js";
export { IgnoredKeys, type IgnoredRow, type IgnoredSetting } from "./config/ignored.js";
export * from "./config/load-settings.js";
export { nearest } from "./config/nearest.js";
export * from "./config/print.js";
export * from "./config/schema.js";
export * from "./config/sections/cache.js";
export * from "./config/sections/grpc-client.js";
export * from "./config/sections/lifecycler.js";
export * from "./config/sections/ring.js";
export * from "./config/sections/tls.js";
export * from "./config/settings.js";
export { formatDurationMs, formatSizeBytes, parseBoolean } from "./config/value.js";
export * from "./limits/limits.js";
export * from "./limits/tenant-limits.js";
