import { twin } from "./twin/kernels.js";

/**
 * The face of the package where there is no Node: the twins under the same names. A browser reads lines and names of
 * levels with them, so nothing is compiled there.
 */

export * from "./plain.js";
export { crc32ByTable as crc32 } from "./shared/bytes.js";

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
  scanJsonKeys,
  scanPattern,
  collectNeedleKeys,
  solveNeedleFilter,
  markNeedleKeys,
  markValueKeys,
  groupNeedleBits,
  hashRows,
} = twin;
