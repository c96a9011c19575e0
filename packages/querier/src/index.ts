export { CorruptSegments } from "./find/corrupt-segments.js";
export * from "./querier.js";
