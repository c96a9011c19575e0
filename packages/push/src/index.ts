export * from "./assemble.js";
export { ByteCache, equalBytes } from "./columns/byte-cache.js";
export * from "./columns/metadata.js";
export { PushMemory, PushMemoryPool } from "./columns/push-memory.js";
export * from "./decode.js";
export * from "./labels.js";
export { runInTurns } from "./turns.js";
