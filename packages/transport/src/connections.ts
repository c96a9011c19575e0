export { ConnectionGuard, type CutObserver } from "./connection-guard.js";
export { Certificates } from "./http/tls.js";
