import { createHash } from "node:crypto";
import type { LocalRef } from "@skald/storage";
import { LRUCache } from "lru-cache";

const maxHashes = 20_000;
const hashes = new LRUCache<string, readonly [number, number]>({ max: maxHashes });

/**
 * For each of some sources, in the order of their first times, a text that is the same when it and the earlier ones that it meets in time
 * are: what they share is the same then.
 */
export function meetingKeys(sources: readonly LocalRef[]): string[] {
  const byEnd = [...sources.keys()].sort((a, b) => {
    const [first, second] = [sources[a]!.maxNs, sources[b]!.maxNs];
    return first < second ? -1 : first > second ? 1 : 0;
  });
  // Sums of the hashes of the earlier ones that have not ended.
  let low = 0;
  let high = 0;
  let ended = 0;
  return sources.map(({ id, minNs }) => {
    for (; sources[byEnd[ended]!]!.maxNs < minNs; ended++) {
      const [ownLow, ownHigh] = hashOf(sources[byEnd[ended]!]!.id);
      low = (low - ownLow) >>> 0;
      high = (high - ownHigh) >>> 0;
    }
    const key = `${id}|${low},${high}`;
    const [ownLow, ownHigh] = hashOf(id);
    low = (low + ownLow) >>> 0;
    high = (high + ownHigh) >>> 0;
    return key;
  });
}

function hashOf(id: string): readonly [number, number] {
  let known = hashes.get(id);
  if (known === undefined) {
    const digest = createHash("sha1").update(id).digest();
    known = [digest.readUInt32LE(0), digest.readUInt32LE(4)];
    hashes.set(id, known);
  }
  return known;
}
