export * from "./segment.js";
export * from "./segment-range.js";
