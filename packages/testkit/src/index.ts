export * from "./batch.js";
export * from "./push-body.js";
export * from "./script.js";
