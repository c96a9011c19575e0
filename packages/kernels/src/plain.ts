// The part of the package's face that is the same with Node and without it; nothing here is compiled.

export { copyBytes, equalBytes, grown, KernelError, type KernelErrorCode } from "./shared/bytes.js";
export {
  type CapturePattern,
  type FieldColumns,
  fieldColumns,
  fieldKind,
  type JsonFieldOptions,
  type LogfmtFieldOptions,
  maxFields,
} from "./shared/fields.js";
export type { Kernels } from "./shared/kernels.js";
export { type LevelOptions, levelCode, normaliseLevel } from "./shared/levels.js";
export {
  type BitmapChoice,
  bitmapSlot,
  chooseKeys,
  type FilterKeys,
  highCoefficient,
  keysOfValues,
  lowCoefficient,
  type MarkedKeys,
  maxBitmapSlots,
  maxRibbonKeys,
  mix,
  type NeedleKey,
  needleKeys,
  nextKey,
  ribbonWidth,
  slotsFor,
  startOf,
  type WindowKeys,
  windowBytes,
} from "./shared/needle.js";
export {
  noTimestampSeconds,
  type RawPush,
  type RawPushLimits,
  type TakeBytes,
} from "./shared/raw-push.js";
export { type ContainsOptions, type RowSelection, selectAll } from "./shared/search.js";
export { compileTextSet, type TextSet } from "./shared/text-set.js";
export { scanLegacyJsonPush } from "./twin/legacy-json-push.js";
export { containsAny } from "./twin/search.js";
