export type { QueryByteLimits } from "./byte-limits.js";
export * from "./querier.js";
export type { SegmentCatalog } from "./source-finder.js";
