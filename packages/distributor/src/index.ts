export type { PushLimits } from "./config.js";
export type { DistributorOptions, IncomingPush, PushTarget } from "./distributor.js";
export { Distributor } from "./distributor.js";
export {
  createPushHandler,
  type PushHandler,
  type PushHandlerOptions,
} from "./http.js";
export { createDistributorMetrics, type DistributorMetrics } from "./metrics.js";
export type { PushResponse } from "./push-response.js";
export { Replicator, type ReplicatorOptions } from "./replicator.js";
