export { KeptRing } from "./kept-ring.js";
export { Lifecycler } from "./lifecycler.js";
export type { Covers, RingInstance } from "./member.js";
export * from "./page.js";
export { redisClient } from "./redis-client.js";
export { RedisRingStore } from "./redis-store.js";
export { Ring } from "./ring.js";
export { MemoryRingStore, type RingStore } from "./ring-store.js";
export {
  RingView,
  rankFor,
  ringKey,
  type WritePlan,
  type WriteTarget,
} from "./ring-view.js";
