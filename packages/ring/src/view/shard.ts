import type { RingInstance } from "../member.js";
import { ringKey } from "./ring-key.js";

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
    return takeOlder(
      rankFor(tenant, own, ({ id }) => id),
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

/** All of some, the one first whose work a tenant's is; who comes or goes changes nothing between the others. */
export function rankFor<T>(tenant: string, all: readonly T[], nameOf: (one: T) => string): T[] {
  return all
    .map((one) => ({ one, name: nameOf(one), score: ringKey(tenant, nameOf(one)) }))
    .sort((a, b) => b.score - a.score || (a.name < b.name ? -1 : 1))
    .map(({ one }) => one);
}
