export * from "./assemble.js";
export { ByteCache, equalBytes } from "./byte-cache.js";
export { type PushStyle, parsePushHeaders } from "./content-type.js";
export * from "./decode.js";
export type { LabelPairs } from "./labels/pairs.js";
export * from "./labels/parse.js";
export * from "./metadata-names.js";
export * from "./sanitise-name.js";
export { runSteps } from "./steps.js";
