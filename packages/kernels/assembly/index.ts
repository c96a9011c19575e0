/** What the compiled module exports: pointers and sizes only, laid out by src/wasm. */
export { hashRows } from "./hash";
export { scanJsonFields } from "./fields/json";
export { scanJsonKeys } from "./fields/json-keys";
export { scanJsonPush } from "./push/json";
export { detectLevels } from "./levels/levels";
export { packPush } from "./push/pack";
export { scanLogfmtFields } from "./fields/logfmt";
export { scanPattern } from "./fields/pattern";
export { scanProtobufPush } from "./push/protobuf";
export { selectContains } from "./search";
export { groupNeedleBits } from "./needle/bit-group";
export { collectNeedleKeys, markNeedleKeys, markValueKeys } from "./needle/windows";
export { solveNeedleFilter } from "./needle/ribbon";
export { snappyDecode } from "./snappy";
export { selectContainsAny } from "./text-set";

/** First address behind the module's own data. */
export function dataEnd(): usize {
  return __heap_base;
}
