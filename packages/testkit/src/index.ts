export * from "./batch.js";
export * from "./certificates.js";
export * from "./memory-disk.js";
export type { Leftover } from "./memory-disk-nodes.js";
export * from "./memory-files.js";
export * from "./push-body.js";
export * from "./random.js";
export * from "./s3/s3-server.js";
export * from "./script.js";
