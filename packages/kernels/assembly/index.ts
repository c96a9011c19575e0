/** What the compiled module exports: pointers and sizes only, laid out by src/wasm. */
export { hashRows } from "./hash";
export { scanJsonFields } from "./json-fields";
export { scanJsonPush } from "./json-push";
export { detectLevels } from "./levels";
export { scanLogfmtFields } from "./logfmt-fields";
export { scanProtobufPush } from "./protobuf-push";
export { selectContains } from "./search";
export { snappyDecode } from "./snappy";

/** First address behind the module's own data. */
export function dataEnd(): usize {
  return __heap_base;
}
