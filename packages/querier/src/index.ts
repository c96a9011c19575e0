export { CorruptSegments } from "./find/corrupt-segments.js";
export * from "./querier.js";
export { QueryLanes } from "./query-lanes.js";
export {
  listedSince,
  ReplicatedIngester,
} from "./replicas/replicated-ingester.js";
export { ReplicatedTailer } from "./replicas/replicated-tailer.js";
export {
  answerCallJob,
  type CallJob,
  onQueryThread,
  type QuerierJob,
} from "./thread-querier.js";
