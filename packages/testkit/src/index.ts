export * from "./batch.js";
export * from "./certificates.js";
export * from "./push-body.js";
export * from "./random.js";
export * from "./script.js";
