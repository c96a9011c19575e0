export { damaged, ProtoReader, wires } from "./protobuf/reader.js";
export { ProtoWriter } from "./protobuf/writer.js";
