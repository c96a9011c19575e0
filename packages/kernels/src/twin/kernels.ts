import type { Kernels } from "../shared/kernels.js";
import { scanJsonFields, scanLogfmtFields } from "./fields.js";
import { hashRows } from "./hash.js";
import { scanJsonKeys } from "./json-keys.js";
import { scanJsonPush } from "./json-push.js";
import { detectLevels } from "./levels.js";
import {
  collectNeedleKeys,
  groupNeedleBits,
  markNeedleKeys,
  markValueKeys,
  solveNeedleFilter,
} from "./needle.js";
import { scanPattern } from "./pattern.js";
import { decodeSnappyProtobufPush } from "./protobuf-push.js";
import { selectContains, selectContainsAny } from "./search.js";
import { decodeSnappy } from "./snappy.js";

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
  scanJsonKeys,
  scanPattern,
  collectNeedleKeys,
  solveNeedleFilter,
  markNeedleKeys,
  markValueKeys,
  groupNeedleBits,
  hashRows,
};
