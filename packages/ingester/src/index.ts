export type { LocalMergeJob, MergeLocal } from "./flush/local-merger.js";
export type { Seal, SealJob } from "./flush/sealer.js";
export type { SegmentStore } from "./flush/uploader.js";
export * from "./ingester.js";
export {
  defaultBounds,
  type IngesterBounds,
  type IngesterLimits,
  type IngesterOptions,
} from "./settings/options.js";
export type { TailWork } from "./tails.js";
export type { FlushReason } from "./tenant/heads.js";
