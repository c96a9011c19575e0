export { ConnectionGuard, type CutObserver } from "./connection-guard.js";
export { readAll } from "./http/body.js";
export { Certificates } from "./http/tls.js";
