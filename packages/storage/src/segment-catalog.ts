import { type Clock, dayNs, floorDiv, type SegmentLocation, type SegmentRef } from "@skald/model";
import { LRUCache } from "lru-cache";
import { dayPrefix, parseSegmentKey, tenantPrefix } from "./keys.js";
import type { ObjectStore } from "./object-store.js";

export interface SegmentCatalogOptions {
  readonly store: Pick<ObjectStore, "list">;
  /** Where the bytes of a key are. */
  readonly locate: (key: string) => SegmentLocation;
  readonly clock: Clock;
}

export interface CatalogRequest {
  readonly tenant: string;
  /** Both inclusive, ns since the epoch. */
  readonly fromNs: bigint;
  readonly toNs: bigint;
  readonly signal: AbortSignal;
}

/** A listing is used again for this long; ingesters keep what they uploaded much longer. */
const listingLifeMs = 5_000;
/** A range of more days is listed as a whole. */
const maxDaysListed = 40n;

/** Knows the sealed segments of the object store: lists days by prefix and prunes by the times in the names. */
export class SegmentCatalog {
  readonly #options: SegmentCatalogOptions;
  readonly #listings: LRUCache<string, Promise<readonly SegmentRef[]>>;

  constructor(options: SegmentCatalogOptions) {
    this.#options = options;
    const perf = { now: () => options.clock.nowMs() };
    this.#listings = new LRUCache({ max: 10_000, ttl: listingLifeMs, ttlResolution: 0, perf });
  }

  /** Segments of a tenant that may hold rows of the range, by key. */
  async list({ tenant, fromNs, toNs, signal }: CatalogRequest): Promise<SegmentRef[]> {
    const listings = await Promise.all(
      prefixesOf(tenant, fromNs, toNs).map((prefix) => this.#listing(prefix)),
    );
    signal.throwIfAborted();
    return listings.flat().filter((ref) => ref.maxNs >= fromNs && ref.minNs <= toNs);
  }

  #listing(prefix: string): Promise<readonly SegmentRef[]> {
    const known = this.#listings.get(prefix);
    if (known !== undefined) return known;
    const listing = this.#read(prefix);
    this.#listings.set(prefix, listing);
    listing.catch(() => this.#listings.delete(prefix));
    return listing;
  }

  /** Not cancelled with the query that asked first: others wait for the same listing. */
  async #read(prefix: string): Promise<SegmentRef[]> {
    const refs: SegmentRef[] = [];
    const { signal } = new AbortController();
    for await (const { key, sizeBytes } of this.#options.store.list(prefix, { signal })) {
      const parsed = parseSegmentKey(key);
      if (parsed === undefined) continue;
      refs.push({ kind: "segment", ...parsed, sizeBytes, location: this.#options.locate(key) });
    }
    return refs;
  }
}

function prefixesOf(tenant: string, fromNs: bigint, toNs: bigint): string[] {
  const first = floorDiv(fromNs, dayNs);
  const last = floorDiv(toNs, dayNs);
  if (last - first >= maxDaysListed) return [tenantPrefix(tenant)];
  const prefixes: string[] = [];
  for (let day = first; day <= last; day++) prefixes.push(dayPrefix(tenant, day * dayNs));
  return prefixes;
}
