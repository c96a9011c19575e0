export type { SegmentCatalog } from "./find/source-finder.js";
export * from "./querier.js";
export type { QueryByteLimits } from "./run/byte-limits.js";
