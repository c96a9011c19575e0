export type { PushTarget } from "./distributor.js";
export { Distributor } from "./distributor.js";
export { hecResult } from "./doors/answers.js";
export { createDoorHandler, type DoorDeps, type DoorName, tenantOrToken } from "./doors/doors.js";
export { createPushHandler, PushDoor } from "./http.js";
export { createDistributorMetrics, type DistributorMetrics } from "./metrics.js";
export { createOtlpHandler, otlpExportPath } from "./otlp-grpc.js";
export { Replicator, type ReplicatorOptions, takerFor } from "./replicator.js";
export { SyslogListeners } from "./syslog/syslog.js";
