export { CorruptSegments } from "./find/corrupt-segments.js";
export * from "./querier.js";
export { QueryLanes, type QueryLanesOptions } from "./query-lanes.js";
export {
  listedSince,
  type Replica,
  type ReplicaSet,
  ReplicatedIngester,
  type ReplicatedIngesterDeps,
} from "./replicas/replicated-ingester.js";
export { ReplicatedTailer, type ReplicatedTailerDeps } from "./replicas/replicated-tailer.js";
export {
  answerCallJob,
  type CallJob,
  type MovedOn,
  onQueryThread,
  type QuerierJob,
  type QuerierServices,
} from "./thread-querier.js";
