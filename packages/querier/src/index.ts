export * from "./querier.js";
export type { SegmentCatalog } from "./source-finder.js";
