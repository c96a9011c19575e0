export * from "./raw-push.js";
