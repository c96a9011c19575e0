export type { LocalMergeJob, MergeLocal } from "./flush/local-merger.js";
export type { FlushReason, Seal, SealJob } from "./flush/sealer.js";
export type { SegmentStore } from "./flush/uploader.js";
export type { IngesterDependencies } from "./ingester.js";
export * from "./ingester.js";
export type { IngesterLimits } from "./settings/options.js";
export { defaultBounds, type IngesterBounds, type IngesterOptions } from "./settings/options.js";
