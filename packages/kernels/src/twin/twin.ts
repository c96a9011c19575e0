import type { Kernels } from "../kernels.js";
import { scanJsonFields } from "./fields/json.js";
import { scanLogfmtFields } from "./fields/logfmt.js";
import { hashRows } from "./hash.js";
import { detectLevels } from "./levels/levels.js";
import { groupNeedleBits, markNeedleKeys, markValueKeys } from "./needle-bits.js";
import { collectNeedleKeys, solveNeedleFilter } from "./needle-filter.js";
import { scanJsonPush } from "./push/json.js";
import { decodeSnappyProtobufPush } from "./push/protobuf.js";
import { selectContains } from "./search.js";
import { decodeSnappy } from "./snappy.js";
import { selectContainsAny } from "./text-set.js";

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
