export { Distributor } from "./distributor.js";
export { createPushHandler, type PushHandler, type PushHandlerOptions } from "./http.js";
export { InflightBytes } from "./inflight.js";
export type { PushResponse } from "./push-response.js";
export { Replicator, type ReplicatorOptions } from "./replicate/replicator.js";
export type { PushLimits } from "./settings/limits.js";
export { createDistributorMetrics, type DistributorMetrics } from "./settings/metrics.js";
export type { DistributorOptions, IncomingPush, PushTarget } from "./settings/options.js";
