/**
 * The face of the package where there is no Node: the twins under the same names. What a browser does with it is to
 * read lines and names of levels, so nothing is compiled there.
 */
import { twin } from "./twin/twin.js";

export { crc32ByTable as crc32 } from "./crc32-table.js";
export {
  type FieldColumns,
  fieldColumns,
  fieldKind,
  fieldStatus,
  type JsonFieldOptions,
  type LogfmtFieldOptions,
} from "./fields/columns.js";
export { KernelError, type KernelErrorCode } from "./kernel-error.js";
export type { Kernels } from "./kernels.js";
export { type LevelOptions, levelCode, normaliseLevel } from "./levels/names.js";
export { scanLegacyJsonPush } from "./push/legacy-json.js";
export type { RawPush, RawPushLimits } from "./push/raw-push.js";
export { noTimestampSeconds } from "./push/time.js";
export { type ContainsOptions, type Selection, selectAll } from "./search/selection.js";

/** Which form of the kernels this thread runs. */
export const kernelForm = twin.form;

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
} = twin;
