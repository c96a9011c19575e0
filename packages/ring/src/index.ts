export { Lifecycler, type LifecyclerOptions } from "./life/lifecycler.js";
export type { Member, MemberState, RingInstance } from "./member.js";
export * from "./page/ring-page.js";
export { MemoryRingStore } from "./store/memory-store.js";
export { RedisRingStore, type RedisStoreOptions } from "./store/redis-store.js";
export type { RingStore } from "./store/ring-store.js";
export * from "./view/ring-view.js";
export { Ring, type RingOptions } from "./watch/ring.js";
