export type { FlushReason, Seal, SealJob } from "./flush.js";
export * from "./ingester.js";
export * from "./options.js";
export type { SegmentStore } from "./upload.js";
