import type { Matcher, SegmentLocation, SegmentRef, TimeRange } from "@skald/model";
import { isMergedId, parseSegmentKey, segmentKey } from "../object-store/keys.js";
import type { ObjectInfo } from "../object-store/object-store.js";
import type { DayIndex } from "./day-index.js";

/** What a listing of a day and its newest index say together. */
export interface DayView {
  readonly index: DayIndex | undefined;
  /** Segments that the index does not know. */
  readonly young: readonly SegmentRef[];
  select(request: DaySelection): SegmentRef[];
}

export interface DaySelection extends TimeRange {
  readonly matchers?: readonly Matcher[];
  /** Ids of segments that the asker has; of these, what a segment replaces is told with it. */
  readonly held?: readonly string[];
  /** Adds segments that are stored but do not count: others have their rows, nobody shall, or no index names them yet. */
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
