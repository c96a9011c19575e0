import { loadKernels } from "./load.js";

export { crc32 } from "./bytes/crc32.js";
export * from "./plain.js";

const kernels = loadKernels();

/** Which form of the kernels this thread runs. */
export const kernelForm = kernels.form;

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
} = kernels;
