import type { SegmentStore } from "@skald/ingester";

import { type ObjectStore, segmentKey } from "@skald/storage";

/** The object store as the ingester uploads to it: by segment, under the keys of keys.ts. */
export function segmentStore(store: ObjectStore): SegmentStore {
  return {
    put: async (ref, path, options) => {
      await store.putFile(segmentKey(ref), path, { ...options, ifAbsent: true });
    },
    has: async (ref, { signal }) => {
      const key = segmentKey(ref);
      for await (const found of store.list(key, { signal })) {
        if (found.key === key) return found.sizeBytes === ref.sizeBytes;
      }
      return false;
    },
  };
}
