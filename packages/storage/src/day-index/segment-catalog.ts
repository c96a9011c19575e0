import {
  dayNs,
  errorCodeOf,
  floorDiv,
  type SegmentLocation,
  type SegmentRef,
  type SteadyClock,
  unavailable,
} from "@skald/model";
import { sleep } from "@skald/runtime";
import { LRUCache } from "lru-cache";
import { dayIndexKey, dayPrefix, parseSegmentKey, tenantPrefix } from "../object-store/keys.js";
import type { CallOptions, ObjectInfo, ObjectStore } from "../object-store/object-store.js";
import type { IndexImage } from "../segment/index-image.js";
import { type DayIndex, decodeDayIndex } from "./day-index.js";
import { type DaySelection, type DayView, dayView, indexesOf, OpenedDays } from "./day-view.js";

export interface SegmentCatalogOptions {
  readonly store: Pick<ObjectStore, "list" | "get">;
  /** Where the bytes of a key are. */
  readonly locate: (key: string) => SegmentLocation;
  readonly clock: SteadyClock;
  /** Decodes a day index elsewhere than on this thread. */
  readonly decodeIndex?: (name: string, bytes: Uint8Array) => Promise<IndexImage>;
  /** Called for a listing that could not be read again while an older one still serves; otherwise calls reject. */
  readonly onListFailure?: (error: unknown, prefix: string) => void;
  /** Called for a damaged day index; the previous one is used. */
  readonly onCorruptIndex?: (error: unknown, key: string) => void;
}

interface ListRequest extends Omit<DaySelection, "places"> {
  readonly tenant: string;
  /** A listing that was begun longer ago than this, in ms, is read anew; by default one that is too old for any query. */
  readonly maxAgeMs?: number;
}

/** A listing older than this is read again, while queries go on with it: listing a full day takes long. */
const listingLifeMs = 5_000;
/** A listing older than this, in ms, is read anew before an answer; ingesters report what they uploaded and dropped since. */
export const maxListingAgeMs = 60_000;
/** For this long after a store did not answer, a query waits for it only so much, while it is asked again. */
const failureLifeMs = 10_000;
const patienceMs = 500;
const maxListings = 10_000;
/** A range of more days is listed as a whole. */
const maxDaysListed = 40n;

interface Listing {
  readonly days: readonly DayView[];
  readonly readMs: number;
}

interface Reading {
  readonly days: Promise<readonly DayView[]>;
  readonly readMs: number;
}

interface Failure {
  readonly error: unknown;
  readonly failedMs: number;
}

/**
 * Knows the sealed segments of the object store: lists days by prefix, reads their newest index, and prunes by streams and
 * times. Never returns a replaced segment beside the one that has its rows.
 */
export class SegmentCatalog {
  readonly #options: SegmentCatalogOptions;
  readonly #listings = new LRUCache<string, Listing>({ max: maxListings });
  readonly #opened: OpenedDays;
  /** Listings that could not be read. */
  readonly #failures = new LRUCache<string, Failure>({ max: maxListings });
  /** Listings that are being read. */
  readonly #reading = new Map<string, Reading>();

  constructor(options: SegmentCatalogOptions) {
    this.#options = options;
    this.#opened = new OpenedDays({
      store: options.store,
      decode: options.decodeIndex ?? (async (name, bytes) => decodeDayIndex(name, bytes)),
      onCorrupt: options.onCorruptIndex ?? (() => {}),
    });
  }

  /** Segments of a tenant that may hold rows of the range, of streams that satisfy every matcher. */
  async list(request: ListRequest, { signal }: CallOptions): Promise<SegmentRef[]> {
    const days = await this.days(request, { signal });
    return days.flatMap((day) => day.select(request));
  }

  /** The days of a tenant that a range touches, as they were listed last. */
  async days(
    { tenant, fromNs, toNs, maxAgeMs = maxListingAgeMs }: ListRequest,
    { signal }: CallOptions,
  ): Promise<DayView[]> {
    const sinceMs = this.#options.clock.elapsedMs() - Math.min(maxAgeMs, maxListingAgeMs);
    const listings = await Promise.all(
      prefixesOf(tenant, fromNs, toNs).map((prefix) => this.#listing(prefix, sinceMs)),
    );
    signal.throwIfAborted();
    return listings.flat();
  }

  /** One that was begun after a time of the clock. */
  async #listing(prefix: string, sinceMs: number): Promise<readonly DayView[]> {
    const known = this.#listings.get(prefix);
    if (known === undefined || known.readMs <= sinceMs) return this.#wait(prefix, sinceMs);
    const ageMs = this.#options.clock.elapsedMs() - known.readMs;
    // When it fails the next query tries again, until the listing is too old.
    if (ageMs > listingLifeMs && !this.#reading.has(prefix))
      this.#refresh(prefix, sinceMs).catch((error) => this.#options.onListFailure?.(error, prefix));
    return known.days;
  }

  /** Where the last read failed a short while ago, a long wait for the next would end the same way. */
  async #wait(prefix: string, sinceMs: number): Promise<readonly DayView[]> {
    const reading = this.#refresh(prefix, sinceMs);
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

  #refresh(prefix: string, sinceMs: number): Promise<readonly DayView[]> {
    const underWay = this.#reading.get(prefix);
    if (underWay !== undefined) {
      if (underWay.readMs > sinceMs) return underWay.days;
      const next = () => this.#refresh(prefix, sinceMs);
      return underWay.days.then(next, next);
    }
    const readMs = this.#options.clock.elapsedMs();
    const reading = this.#read(prefix)
      .then(
        (days) => {
          this.#failures.delete(prefix);
          this.#listings.set(prefix, { days, readMs });
          return days;
        },
        (error: unknown) => {
          this.#failures.set(prefix, { error, failedMs: this.#options.clock.elapsedMs() });
          throw error;
        },
      )
      .finally(() => this.#reading.delete(prefix));
    this.#reading.set(prefix, { days: reading, readMs });
    return reading;
  }

  /** Not cancelled with the query that asked first: others wait for the same listing. */
  async #read(prefix: string): Promise<readonly DayView[]> {
    try {
      return await this.#readDays(prefix);
    } catch (error) {
      // An index that was listed may be deleted by now; there is a newer one then.
      if (errorCodeOf(error) !== "not_found") throw error;
      return this.#readDays(prefix);
    }
  }

  async #readDays(prefix: string): Promise<readonly DayView[]> {
    const { signal } = new AbortController();
    const byDay = new Map<string, ObjectInfo[]>();
    for await (const object of this.#options.store.list(prefix, { signal })) {
      const day = object.key.slice(0, object.key.lastIndexOf("/") + 1);
      const objects = byDay.get(day);
      if (objects === undefined) byDay.set(day, [object]);
      else objects.push(object);
    }
    const days = [...byDay].map(async ([day, objects]) => {
      const index = await this.#newest(day, objects);
      return dayView(objects, index, this.#options.locate);
    });
    return Promise.all(days);
  }

  /** Without an index it is not known which segments have the rows of others: the day waits until compaction has written one. */
  async #newest(day: string, objects: readonly ObjectInfo[]): Promise<DayIndex | undefined> {
    const { signal } = new AbortController();
    const text = `the index of ${day} is damaged; compaction writes it anew`;
    let index: DayIndex | undefined;
    try {
      index = await this.#opened.newest(objects, { signal });
    } catch (error) {
      if (errorCodeOf(error) !== "internal") throw error;
      throw unavailable(text, { cause: error });
    }
    if (index !== undefined && namesDeleted(index, objects)) throw unavailable(text);
    return index;
  }
}

/**
 * Whether an older index than the newest one counts a segment that is deleted: a cache may have its rows still, and nothing
 * hides them any more.
 */
function namesDeleted(index: DayIndex, objects: readonly ObjectInfo[]): boolean {
  const [newest] = indexesOf(objects);
  if (newest === undefined || newest.key === dayIndexKey(index)) return false;
  const ids = new Set(objects.map(({ key }) => parseSegmentKey(key)?.id));
  return index.segments.some(({ id }) => !ids.has(id));
}

function prefixesOf(tenant: string, fromNs: bigint, toNs: bigint): string[] {
  const first = floorDiv(fromNs, dayNs);
  const last = floorDiv(toNs - 1n, dayNs);
  if (last - first >= maxDaysListed) return [tenantPrefix(tenant)];
  const prefixes: string[] = [];
  for (let day = first; day <= last; day++) prefixes.push(dayPrefix(tenant, day * dayNs));
  return prefixes;
}
