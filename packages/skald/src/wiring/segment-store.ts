import type { SegmentStore } from "@skald/ingester";
import { errorCodeOf } from "@skald/model";
import { type ObjectStore, segmentKey } from "@skald/storage";

/** The object store as the ingester uploads to it: by segment, under the keys of keys.ts. */
export function segmentStore(store: ObjectStore): SegmentStore {
  return {
    put: async (ref, path, options) => {
      await store.putFile(segmentKey(ref), path, { ...options, ifAbsent: true, isSynced: true });
    },
    has: async (ref, { signal }) => {
      try {
        const { sizeBytes } = await store.stat(segmentKey(ref), { signal });
        return sizeBytes === ref.sizeBytes;
      } catch (error) {
        if (errorCodeOf(error) === "not_found") return false;
        throw error;
      }
    },
  };
}
