export { decode, decodeRaw, encode } from "./codec/codec.js";
export { decodePush, encodePush, encodePushBody, encodePushInParts } from "./codec/push.js";
export { services } from "./codec/schema.js";
export type { Inside, MessageName } from "./codec/types.js";
