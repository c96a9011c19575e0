import { loadKernels } from "./load.js";

export { crc32 } from "./crc32.js";
export {
  type FieldColumns,
  fieldColumns,
  fieldKind,
  fieldStatus,
  type JsonFieldOptions,
  type LogfmtFieldOptions,
} from "./field-columns.js";
export { KernelError, type KernelErrorCode } from "./kernel-error.js";
export type { Kernels } from "./kernels.js";
export { scanLegacyJsonPush } from "./legacy-json-push.js";
export { type LevelOptions, levelCode, normaliseLevel } from "./level-names.js";
export { noTimestampSeconds } from "./push-time.js";
export type { RawPush, RawPushLimits } from "./raw-push.js";
export { type ContainsOptions, type Selection, selectAll } from "./selection.js";

const kernels = loadKernels();

/** Which form of the kernels this thread runs. */
export const kernelForm = kernels.form;

export const {
  decodeSnappy,
  decodeSnappyProtobufPush,
  scanJsonPush,
  detectLevels,
  selectContains,
  indexOfBytes,
  scanJsonFields,
  scanLogfmtFields,
  hashRows,
} = kernels;
