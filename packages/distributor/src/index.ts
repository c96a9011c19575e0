export { Distributor } from "./distributor.js";
export { createPushHandler, type PushHandler, type PushHandlerOptions } from "./http.js";
export { InflightBytes } from "./inflight.js";
export type { PushLimits } from "./limits.js";
export { createDistributorMetrics, type DistributorMetrics } from "./metrics.js";
export type { DistributorOptions, IncomingPush, PushTarget } from "./options.js";
export type { PushResponse } from "./push-response.js";
export { Replicator, type ReplicatorOptions } from "./replicate/replicator.js";
