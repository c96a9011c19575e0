export type { PushTarget } from "./distributor.js";
export { Distributor } from "./distributor.js";
export { createPushHandler } from "./http.js";
export { createDistributorMetrics, type DistributorMetrics } from "./metrics.js";

export { Replicator, type ReplicatorOptions } from "./replicator.js";
