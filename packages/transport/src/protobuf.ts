export { damaged, ProtoReader, wires } from "./protobuf/reader.js";
export { bytesOf, ProtoWriter } from "./protobuf/writer.js";
