export { KeptRing } from "./kept-ring.js";
export { Lifecycler, type LifecyclerOptions } from "./lifecycler.js";
export type { Covers, Member, MemberState, RingInstance } from "./member.js";
export * from "./page.js";
export { redisClient } from "./redis-client.js";
export { RedisRingStore, type RedisStoreOptions } from "./redis-store.js";
export { type LostMember, Ring, type RingOptions } from "./ring.js";
export { MemoryRingStore, type RingStore } from "./ring-store.js";
export {
  type ReadSet,
  RingView,
  rankFor,
  ringKey,
  type WritePlan,
  type WriteTarget,
} from "./ring-view.js";
