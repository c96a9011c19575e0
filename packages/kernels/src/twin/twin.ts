import type { Kernels } from "../kernels.js";
import { hashRows } from "./hash.js";
import { scanJsonFields } from "./json-fields.js";
import { scanJsonPush } from "./json-push.js";
import { detectLevels } from "./levels.js";
import { scanLogfmtFields } from "./logfmt-fields.js";
import { decodeSnappyProtobufPush } from "./protobuf-push.js";
import { indexOfBytes, selectContains } from "./search.js";
import { decodeSnappy } from "./snappy.js";

/** The kernels in plain TypeScript: what the compiled ones must do, and what runs where those cannot. */
export const twin: Kernels = {
  form: "twin",
  decodeSnappy,
  decodeSnappyProtobufPush,
  scanJsonPush,
  detectLevels,
  selectContains,
  indexOfBytes,
  scanJsonFields,
  scanLogfmtFields,
  hashRows,
};
