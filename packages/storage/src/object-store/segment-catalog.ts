import {
  dayNs,
  floorDiv,
  type SegmentLocation,
  type SegmentRef,
  type SteadyClock,
  type TimeRange,
} from "@skald/model";
import { sleep } from "@skald/runtime";
import { LRUCache } from "lru-cache";
import { dayPrefix, parseSegmentKey, tenantPrefix } from "./keys.js";
import type { CallOptions, ObjectStore } from "./object-store.js";

export interface SegmentCatalogOptions {
  readonly store: Pick<ObjectStore, "list">;
  /** Where the bytes of a key are. */
  readonly locate: (key: string) => SegmentLocation;
  readonly clock: SteadyClock;
  /** Told of a listing that could not be read again while an older one still serves; others reject. */
  readonly onListFailure?: (error: unknown, prefix: string) => void;
}

interface ListRequest extends TimeRange {
  readonly tenant: string;
  /** Lists anew, because a segment of the last listing was gone. */
  readonly fresh?: boolean;
}

/** A listing older than this is read again, while queries go on with it: listing a full day takes long. */
const listingLifeMs = 5_000;
/** A listing older than this is waited for; ingesters keep what they uploaded much longer. */
const maxListingAgeMs = 60_000;
/** For this long after a store did not answer, a query waits for it only so much, while it is asked again. */
const failureLifeMs = 10_000;
const patienceMs = 500;
const maxListings = 10_000;
/** A range of more days is listed as a whole. */
const maxDaysListed = 40n;

interface Listing {
  readonly refs: readonly SegmentRef[];
  readonly readMs: number;
}

interface Failure {
  readonly error: unknown;
  readonly failedMs: number;
}

/** Knows the sealed segments of the object store: lists days by prefix and prunes by the times in the names. */
export class SegmentCatalog {
  readonly #options: SegmentCatalogOptions;
  readonly #listings = new LRUCache<string, Listing>({ max: maxListings });
  /** Listings that could not be read. */
  readonly #failures = new LRUCache<string, Failure>({ max: maxListings });
  /** Listings that are being read. */
  readonly #reading = new Map<string, Promise<readonly SegmentRef[]>>();

  constructor(options: SegmentCatalogOptions) {
    this.#options = options;
  }

  /** Segments of a tenant that may hold rows of the range, by key. */
  async list(request: ListRequest, { signal }: CallOptions): Promise<SegmentRef[]> {
    const { tenant, fromNs, toNs, fresh = false } = request;
    const listings = await Promise.all(
      prefixesOf(tenant, fromNs, toNs).map((prefix) => this.#listing(prefix, fresh)),
    );
    signal.throwIfAborted();
    return listings.flat().filter((ref) => ref.maxNs >= fromNs && ref.minNs < toNs);
  }

  async #listing(prefix: string, fresh: boolean): Promise<readonly SegmentRef[]> {
    const known = fresh ? undefined : this.#listings.get(prefix);
    const ageMs = known === undefined ? 0 : this.#options.clock.elapsedMs() - known.readMs;
    if (known === undefined || ageMs > maxListingAgeMs) return this.#wait(prefix);
    // When it fails the next query tries again, until the listing is too old.
    if (ageMs > listingLifeMs && !this.#reading.has(prefix))
      this.#refresh(prefix).catch((error) => this.#options.onListFailure?.(error, prefix));
    return known.refs;
  }

  /** Where the last read failed a short while ago, a long wait for the next would end the same way. */
  async #wait(prefix: string): Promise<readonly SegmentRef[]> {
    const reading = this.#refresh(prefix);
    const failure = this.#failures.get(prefix);
    const nowMs = this.#options.clock.elapsedMs();
    if (failure === undefined || nowMs - failure.failedMs > failureLifeMs) return reading;
    reading.catch(() => {});
    const pause = new AbortController();
    const late = sleep(patienceMs, pause.signal).then(() => Promise.reject(failure.error));
    late.catch(() => {});
    try {
      return await Promise.race([reading, late]);
    } finally {
      pause.abort();
    }
  }

  #refresh(prefix: string): Promise<readonly SegmentRef[]> {
    const underWay = this.#reading.get(prefix);
    if (underWay !== undefined) return underWay;
    const readMs = this.#options.clock.elapsedMs();
    const reading = this.#read(prefix)
      .then(
        (refs) => {
          this.#failures.delete(prefix);
          this.#listings.set(prefix, { refs, readMs });
          return refs;
        },
        (error: unknown) => {
          this.#failures.set(prefix, { error, failedMs: this.#options.clock.elapsedMs() });
          throw error;
        },
      )
      .finally(() => this.#reading.delete(prefix));
    this.#reading.set(prefix, reading);
    return reading;
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
  const last = floorDiv(toNs - 1n, dayNs);
  if (last - first >= maxDaysListed) return [tenantPrefix(tenant)];
  const prefixes: string[] = [];
  for (let day = first; day <= last; day++) prefixes.push(dayPrefix(tenant, day * dayNs));
  return prefixes;
}
