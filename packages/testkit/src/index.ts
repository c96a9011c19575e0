export * from "./batch.js";
