import { fnv1a32 } from "@skald/model";

/**
 * The place on a ring of what is named by these texts. FNV spreads the last bytes badly over the upper bits: the finalizer of
 * MurmurHash3 mixes them in.
 */
export function ringKey(...names: readonly string[]): number {
  let hash = fnv1a32(names.join("\0"));
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
