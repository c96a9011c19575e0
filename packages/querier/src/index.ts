export { CorruptSegments } from "./find/corrupt-segments.js";
export * from "./querier.js";
export { QueryTooHeavy } from "./run/query-run.js";
