export type * from "./call.js";
export type * from "./catalog.js";
export * from "./codec/outcome.js";
export * from "./codec/streams.js";
export type * from "./distributor.js";
export type * from "./ingester.js";
export type * from "./querier.js";
export type * from "./scan.js";
export type * from "./source.js";
