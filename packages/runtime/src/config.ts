// The face "@skald/runtime/config": how keys are declared, read, checked and printed.
export * from "./blocks/backoff.js";
export * from "./blocks/cache.js";
export * from "./blocks/grpc-client.js";
export * from "./blocks/lifecycler.js";
export * from "./blocks/ring.js";
export * from "./blocks/tls.js";
export * as field from "./config/field.js";
export * from "./config/key-notes.js";
export * from "./config/load-settings.js";
export { nearest } from "./config/nearest.js";
export * from "./config/print.js";
export * from "./config/schema.js";
export * from "./config/settings.js";
export { formatDurationMs, formatSizeBytes } from "./config/value.js";
export * from "./limits/limits.js";
export * from "./limits/tenant-limits.js";
