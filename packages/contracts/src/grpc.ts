export { remoteIngester, serveIngester } from "./carrier/ingester.js";
export * from "./carrier/patterns.js";
export { remoteRules, serveRules } from "./carrier/rules.js";
export { remoteScheduler, serveScheduler } from "./carrier/scheduler.js";
export * from "./carrier/services.js";
export * from "./carrier/tail.js";
