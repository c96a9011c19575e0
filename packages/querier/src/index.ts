export { CorruptSegments } from "./find/corrupt-segments.js";
export * from "./querier.js";
export { listedSince } from "./replicas/listed-since.js";
export {
  type Replica,
  type ReplicaSet,
  ReplicatedIngester,
  type ReplicatedIngesterDeps,
} from "./replicas/replicated-ingester.js";
export { ReplicatedTailer, type ReplicatedTailerDeps } from "./replicas/replicated-tailer.js";
export { QueryTooHeavy } from "./run/query-run.js";
