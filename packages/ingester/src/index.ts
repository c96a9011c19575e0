export type { LocalMergeJob, MergeLocal } from "./flush/local-merger.js";
export type { FlushReason, Seal, SealJob } from "./flush/sealer.js";
export type { SegmentStore } from "./flush/uploader.js";
export * from "./ingester.js";
export type { IngesterDependencies } from "./parts.js";
export type { IngesterLimits } from "./settings/limits.js";
export { defaultBounds, type IngesterBounds, type IngesterOptions } from "./settings/options.js";
