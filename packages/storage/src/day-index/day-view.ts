import {
  errorCodeOf,
  type Matcher,
  type SegmentLocation,
  type SegmentRef,
  type TimeRange,
} from "@skald/model";
import { LRUCache } from "lru-cache";
import { isMergedId, parseDayIndexKey, parseSegmentKey, segmentKey } from "../object-store/keys.js";
import type { CallOptions, ObjectInfo, ObjectStore } from "../object-store/object-store.js";
import type { IndexImage } from "../segment/index-image.js";
import { DayIndex } from "./day-index.js";

/** The segments of a day, from a listing and its newest index. */
export interface DayView {
  readonly index: DayIndex | undefined;
  /** Segments that the index does not know. */
  readonly young: readonly SegmentRef[];
  select(request: DaySelection): SegmentRef[];
}

export interface DaySelection extends TimeRange {
  readonly matchers?: readonly Matcher[];
  /** Ids of segments that the caller has; a selected segment lists the ones that it replaces. */
  readonly held?: readonly string[];
  /** Adds stored segments that do not count: replaced or deleted ones, and merged ones that no index names yet. */
  readonly withUncounted?: boolean;
  /** Places in the index of segments that were chosen already; those that are young are still chosen by their times. */
  readonly places?: Iterable<number>;
}

/** Puts the listing of a day and its newest index together: each row of the day is in exactly one of the segments. */
export function dayView(
  objects: readonly ObjectInfo[],
  index: DayIndex | undefined,
  locate: (key: string) => SegmentLocation,
): DayView {
  const young: SegmentRef[] = [];
  const uncounted: SegmentRef[] = [];
  for (const { key, sizeBytes } of objects) {
    const parsed = parseSegmentKey(key);
    if (parsed === undefined || index?.find(parsed.id) !== undefined) continue;
    const isYoung = !isMergedId(parsed.id) && index?.goneOf(parsed.id) === undefined;
    const ref: SegmentRef = { kind: "segment", ...parsed, sizeBytes, location: locate(key) };
    (isYoung ? young : uncounted).push(ref);
  }
  const known: (SegmentRef | undefined)[] = [];
  const refAt = (day: DayIndex, place: number): SegmentRef => {
    known[place] ??= refOf(day, place, locate);
    return known[place];
  };
  const select = (selection: DaySelection): SegmentRef[] => {
    const { fromNs, toNs, matchers, held = [], places, withUncounted = false } = selection;
    const unindexed = withUncounted ? [...young, ...uncounted] : young;
    const found = unindexed.filter((ref) => ref.maxNs >= fromNs && ref.minNs < toNs);
    if (index === undefined) return found;
    const replaced = replacedBy(index, held);
    for (const place of places ?? index.select({ fromNs, toNs }, matchers)) {
      const ref = refAt(index, place);
      const replaces = replaced.get(ref.id);
      found.push(replaces === undefined ? ref : { ...ref, replaces });
    }
    return found;
  };
  return { index, young, select };
}

/** Which of the ids each segment has replaced. */
function replacedBy(index: DayIndex, held: readonly string[]): Map<string, string[]> {
  const replaced = new Map<string, string[]>();
  for (const id of held) {
    const by = index.goneOf(id)?.by;
    if (by !== undefined) replaced.set(by, [...(replaced.get(by) ?? []), id]);
  }
  return replaced;
}

function refOf(
  index: DayIndex,
  place: number,
  locate: (key: string) => SegmentLocation,
): SegmentRef {
  const { id, minNs, maxNs, sizeBytes } = index.segments[place]!;
  const { tenant } = index;
  const location = locate(segmentKey({ tenant, id, minNs, maxNs }));
  const ref: SegmentRef = { kind: "segment", id, tenant, minNs, maxNs, sizeBytes, location };
  return index.counts.isApart(place) ? { ...ref, isApart: true } : ref;
}

/** Bytes of the day indexes that are kept open, and how many those are at most. */
const maxOpenBytes = 256 * 1024 * 1024;
const maxOpen = 1000;

export interface OpenedDaysOptions {
  readonly store: Pick<ObjectStore, "get">;
  readonly decode: (name: string, bytes: Uint8Array) => Promise<IndexImage>;
  readonly onCorrupt: (error: unknown, key: string) => void;
}

/** Reads the day indexes of a store, and keeps those that were read lately. */
export class OpenedDays {
  readonly #options: OpenedDaysOptions;
  readonly #open = new LRUCache<string, DayIndex>({
    max: maxOpen,
    maxSize: maxOpenBytes,
    // One that is larger has all of it to itself.
    sizeCalculation: ({ image }) => Math.min(image.byteLength, maxOpenBytes),
  });

  constructor(options: OpenedDaysOptions) {
    this.#options = options;
  }

  /**
   * The newest index among the objects of a day, or the one before it where that is damaged; undefined when there is none. Throws
   * `internal` when all are damaged, and what the store throws.
   */
  async newest(
    objects: readonly ObjectInfo[],
    options: CallOptions,
  ): Promise<DayIndex | undefined> {
    let damage: unknown;
    for (const object of indexesOf(objects)) {
      try {
        return await this.#read(object, options);
      } catch (error) {
        if (errorCodeOf(error) !== "internal") throw error;
        this.#options.onCorrupt(error, object.key);
        damage ??= error;
      }
    }
    if (damage !== undefined) throw damage;
    return undefined;
  }

  async #read({ key, sizeBytes, modifiedMs }: ObjectInfo, options: CallOptions): Promise<DayIndex> {
    // Where puts are not conditional two compactors may have written one generation.
    const version = `${key} ${sizeBytes} ${modifiedMs}`;
    const known = this.#open.get(version);
    if (known !== undefined) return known;
    const bytes = await this.#options.store.get(key, options);
    const index = new DayIndex(await this.#options.decode(key, bytes));
    this.#open.set(version, index);
    return index;
  }
}

/** The day indexes among objects, the newest first. */
export function indexesOf(objects: readonly ObjectInfo[]): ObjectInfo[] {
  return objects
    .filter(({ key }) => parseDayIndexKey(key) !== undefined)
    .sort((a, b) => (a.key < b.key ? 1 : -1));
}
