export type * from "./pipeline.js";
