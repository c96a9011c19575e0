/**
 * The face of the package where there is no Node: the twins under the same names. What a browser does with it is to
 * read lines and names of levels, so nothing is compiled there.
 */
import { twin } from "./twin.js";

export { crc32ByTable as crc32 } from "./bytes/crc32-table.js";
export * from "./plain.js";

/** Which form of the kernels this thread runs. */
export const kernelForm = twin.form;

export const {
  decodeSnappy,
  decodeSnappyProtobufPush,
  scanJsonPush,
  detectLevels,
  selectContains,
  selectContainsAny,
  scanJsonFields,
  scanLogfmtFields,
  collectNeedleKeys,
  solveNeedleFilter,
  markNeedleKeys,
  markValueKeys,
  groupNeedleBits,
  hashRows,
} = twin;
