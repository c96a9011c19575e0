import { MemoryRingStore, type RingStore } from "./ring-store.js";
import { describeRingStore } from "./testing/ring-store.suite.js";

const shared = new MemoryRingStore();
/** Handles on one store: closing one leaves the others alone. */
const open = (): RingStore => ({
  read: (ring) => shared.read(ring),
  write: (ring, id, text, options) => shared.write(ring, id, text, options),
  remove: (ring, id) => shared.remove(ring, id),
  watch: (ring, onNews) => shared.watch(ring, onNews),
  close: async () => undefined,
});

describeRingStore("memory", () => ({ open }));
