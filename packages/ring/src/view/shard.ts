import { fnv1a32 } from "@skald/model";
import type { RingInstance } from "../member.js";

/** Whose part of a ring is wanted, and how large. */
export interface ShardOptions {
  readonly tenant: string;
  /** Instances in all. */
  readonly size: number;
  /** Instances registered later, in ms since the epoch, do not count as filling the shard. */
  readonly since: number | undefined;
  readonly isZoneAware: boolean;
}

/**
 * The instances of a tenant by rendezvous hashing (Thaler and Ravishankar, 1998): each has a score that depends on the tenant
 * and its own id only, and the best ones are taken. So an instance that comes or goes changes one place at most.
 */
export function rankForShard(
  instances: readonly RingInstance[],
  { tenant, size, since, isZoneAware }: ShardOptions,
): RingInstance[] {
  const zones = isZoneAware ? [...new Set(instances.map(({ zone }) => zone))] : [undefined];
  const wanted = Math.ceil(size / zones.length);
  return zones.flatMap((zone) => {
    const own = instances.filter((instance) => zone === undefined || instance.zone === zone);
    const scored = own.map((instance) => ({ instance, score: scoreOf(tenant, instance.id) }));
    scored.sort((a, b) => b.score - a.score || (a.instance.id < b.instance.id ? -1 : 1));
    return takeOlder(
      scored.map(({ instance }) => instance),
      wanted,
      since,
    );
  });
}

/** Takes from the front until enough are old enough; without a time, that many. */
function takeOlder(
  ranked: readonly RingInstance[],
  wanted: number,
  since: number | undefined,
): RingInstance[] {
  if (since === undefined) return ranked.slice(0, wanted);
  const taken: RingInstance[] = [];
  let older = 0;
  for (const instance of ranked) {
    if (older >= wanted) break;
    taken.push(instance);
    if (instance.registeredMs < since) older++;
  }
  return taken;
}

/** FNV spreads the last bytes badly over the upper bits: the finalizer of MurmurHash3 mixes them in. */
function scoreOf(tenant: string, id: string): number {
  let hash = fnv1a32(tenant, "\0", id);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
