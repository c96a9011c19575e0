export * from "./protobuf/codec.js";
export * from "./protobuf/message.js";
export { damaged, ProtoReader, wires } from "./protobuf/reader.js";
export { bytesOf, ProtoWriter } from "./protobuf/writer.js";
