// The part of the package's face that is the same with Node and without: nothing of it is compiled.
export { copyBytes } from "./bytes/copy-bytes.js";
export { grown } from "./bytes/grown.js";
export { KernelError, type KernelErrorCode } from "./bytes/kernel-error.js";
export {
  type FieldColumns,
  fieldColumns,
  fieldKind,
  type JsonFieldOptions,
  type LogfmtFieldOptions,
  maxFields,
} from "./fields/columns.js";
export type { Kernels } from "./kernels.js";
export { type LevelOptions, levelCode, normaliseLevel } from "./levels/names.js";
export {
  type BitmapChoice,
  bitmapSlot,
  type MarkedKeys,
  maxBitmapSlots,
} from "./needle/bitmap.js";
export {
  chooseKeys,
  type FilterKeys,
  keysOfValues,
  mix,
  type NeedleKey,
  needleKeys,
  nextKey,
  type WindowKeys,
  windowBytes,
} from "./needle/needle-keys.js";
export {
  highCoefficient,
  lowCoefficient,
  maxRibbonKeys,
  ribbonWidth,
  slotsFor,
  startOf,
} from "./needle/ribbon.js";
export {
  noTimestampSeconds,
  type RawPush,
  type RawPushLimits,
  type TakeBytes,
} from "./push/raw-push.js";
export { type ContainsOptions, type RowSelection, selectAll } from "./search/selection.js";
export { compileTextSet, type TextSet } from "./search/text-set.js";
export { scanLegacyJsonPush } from "./twin/push/legacy-json.js";
export { containsAny } from "./twin/text-set.js";
