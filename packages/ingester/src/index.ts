export type { SegmentStore } from "./flush/uploader.js";
export * from "./ingester.js";
export {
  defaultBounds,
  type IngesterOptions,
} from "./settings/options.js";
export type { TailWork } from "./tails.js";
