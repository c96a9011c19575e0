import type { Kernels } from "./kernels.js";
import { scanJsonFields } from "./twin/fields/json.js";
import { scanLogfmtFields } from "./twin/fields/logfmt.js";
import { hashRows } from "./twin/hash.js";
import { detectLevels } from "./twin/levels/levels.js";
import { groupNeedleBits, markNeedleKeys, markValueKeys } from "./twin/needle-bits.js";
import { collectNeedleKeys, solveNeedleFilter } from "./twin/needle-filter.js";
import { scanJsonPush } from "./twin/push/json.js";
import { decodeSnappyProtobufPush } from "./twin/push/protobuf.js";
import { selectContains } from "./twin/search.js";
import { decodeSnappy } from "./twin/snappy.js";
import { selectContainsAny } from "./twin/text-set.js";

/** The kernels in plain TypeScript: what the compiled ones must do, and what runs where those cannot. */
export const twin: Kernels = {
  form: "twin",
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
};
