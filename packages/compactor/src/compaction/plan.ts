import { internal } from "@skald/model";
import {
  type DayIndex,
  type GoneSegment,
  type IndexedSegment,
  indexesOf,
  inOrderOfArrival,
  isMergedId,
  type ObjectInfo,
  parseSegmentKey,
  segmentKey,
} from "@skald/storage";

/** How large merged segments become, and how many segments go into one. */
export interface PlanBounds {
  /** Bytes of lines of a segment that is large enough. */
  readonly targetBytes: number;
  /** Segments of one size that justify a merge. */
  readonly minInputs: number;
  readonly maxInputs: number;
}

export const planBounds: PlanBounds = {
  targetBytes: 1024 * 1024 * 1024,
  minInputs: 8,
  maxInputs: 256,
};

/** Segments of one size are within this factor; a merge lifts its rows by at least one size. */
const sizeFactor = 8;
const smallestBytes = 64 * 1024;
/** Bytes of input blocks that a merge keeps in memory. */
const maxHeldBytes = 128 * 1024 * 1024;
const heldPerInput = 1024 * 1024;
/** The last merge of a day must make the largest segment larger by this factor. */
const worthwhileGrowth = 1.25;

/**
 * Which segments of a day to merge now, in groups without one in common; each group in order of arrival. While rows come in,
 * segments of about one size are merged when there are enough of them, so that each row is written once for each size.
 * Once the day is settled all that is small is merged. Neighbours in time are merged first: what is large still has a narrow range.
 * What is merged stands where its first input did, so one that arrived between inputs and has times in common with a later one of
 * them is merged too, whatever its size; where that is too much, the group ends there.
 */
export function planMerges(
  segments: readonly IndexedSegment[],
  isSettled: boolean,
  bounds: PlanBounds = planBounds,
): Group[] {
  const small = segments
    .filter(({ lineBytes }) => lineBytes < bounds.targetBytes / 2)
    .sort((a, b) => (a.minNs < b.minNs ? -1 : a.minNs > b.minNs ? 1 : a.id < b.id ? -1 : 1));
  const order = new ArrivalOrder(segments, bounds);
  if (isSettled) return order.keep(cut(small, bounds), (group) => isWorthwhile(group, bounds));
  const bySize = new Map<number, IndexedSegment[]>();
  for (const segment of small) {
    const size = sizeOf(segment);
    bySize.set(size, [...(bySize.get(size) ?? []), segment]);
  }
  return order.keep(
    [...bySize.values()].flatMap((some) => cut(some, bounds)),
    (group) => group.length >= bounds.minInputs || linesOf(group) >= bounds.targetBytes / 2,
  );
}

type Group = IndexedSegment[];

/** Ensures that merges do not change which of two segments arrived first, where that shows. */
class ArrivalOrder {
  readonly #bounds: PlanBounds;
  /** In order of arrival. */
  readonly #all: readonly IndexedSegment[];
  readonly #rank = new Map<IndexedSegment, number>();

  constructor(segments: readonly IndexedSegment[], bounds: PlanBounds) {
    this.#bounds = bounds;
    this.#all = inOrderOfArrival(segments);
    for (const [rank, segment] of this.#all.entries()) this.#rank.set(segment, rank);
  }

  /** Closes groups and keeps those that are worth a merge. No two of them share a segment. */
  keep(groups: readonly Group[], isWorth: (group: Group) => boolean): Group[] {
    const used = new Set<IndexedSegment>();
    return groups
      .filter((group) => isWorth(group))
      .flatMap((group) => this.#closed(group))
      .filter((group) => {
        if (!isWorth(group) || group.some((segment) => used.has(segment))) return false;
        for (const segment of group) used.add(segment);
        return true;
      });
  }

  /** A group with all segments that must be merged with it, in order of arrival. It is split where that is too much. */
  #closed(some: Group): Group[] {
    const group = [...some].sort((a, b) => this.#rankOf(a) - this.#rankOf(b));
    for (;;) {
      const between = this.#between(group);
      if (between === undefined) return group.length > 1 ? [group] : [];
      const rank = this.#rankOf(between);
      const place = group.findIndex((segment) => this.#rankOf(segment) > rank);
      const { targetBytes, maxInputs } = this.#bounds;
      const isTooMuch =
        group.length >= maxInputs || linesOf(group) + between.lineBytes > targetBytes;
      if (isTooMuch)
        return [...this.#closed(group.slice(0, place)), ...this.#closed(group.slice(place))];
      group.splice(place, 0, between);
    }
  }

  /** A segment outside the group that arrived after its first segment, and before one that it overlaps in time. */
  #between(group: Group): IndexedSegment | undefined {
    const own = new Set(group);
    const last = group.at(-1);
    if (last === undefined) return undefined;
    for (let rank = this.#rankOf(group[0]!) + 1; rank < this.#rankOf(last); rank++) {
      const one = this.#all[rank]!;
      if (own.has(one)) continue;
      const isMet = group.some((segment) => this.#rankOf(segment) > rank && overlap(segment, one));
      if (isMet) return one;
    }
    return undefined;
  }

  #rankOf(segment: IndexedSegment): number {
    return this.#rank.get(segment)!;
  }
}

function overlap(a: IndexedSegment, b: IndexedSegment): boolean {
  return a.minNs <= b.maxNs && b.minNs <= a.maxNs;
}

function cut(segments: readonly IndexedSegment[], bounds: PlanBounds): IndexedSegment[][] {
  const groups: IndexedSegment[][] = [];
  let group: IndexedSegment[] = [];
  let bytes = 0;
  let held = 0;
  for (const segment of segments) {
    const { lineBytes } = segment;
    const holds = Math.min(lineBytes, heldPerInput);
    const isFull =
      group.length === bounds.maxInputs ||
      bytes + lineBytes > bounds.targetBytes ||
      held + holds > maxHeldBytes;
    if (isFull) {
      groups.push(group);
      group = [];
      bytes = 0;
      held = 0;
    }
    group.push(segment);
    bytes += lineBytes;
    held += holds;
  }
  groups.push(group);
  return groups.filter(({ length }) => length > 1);
}

function isWorthwhile(group: readonly IndexedSegment[], { minInputs }: PlanBounds): boolean {
  const largest = Math.max(...group.map(({ lineBytes }) => lineBytes));
  return group.length >= minInputs || linesOf(group) >= worthwhileGrowth * largest;
}

function sizeOf({ lineBytes }: IndexedSegment): number {
  const ratio = Math.max(lineBytes, smallestBytes) / smallestBytes;
  return Math.floor(Math.log(ratio) / Math.log(sizeFactor));
}

function linesOf(group: readonly IndexedSegment[]): number {
  return group.reduce((sum, { lineBytes }) => sum + lineBytes, 0);
}

/** A segment of a listing. */
export interface ListedSegment extends Pick<IndexedSegment, "id" | "minNs" | "maxNs"> {
  readonly modifiedMs: number;
  /** Ids of the segments that it was merged from; undefined when unknown. */
  readonly replaces?: readonly string[] | undefined;
}

/** The changes that bring an older index, or none, up to date with the bucket. */
interface Rebuild {
  /** Ids of segments that count. */
  readonly add: readonly string[];
  readonly remove: readonly GoneSegment[];
}

/**
 * Finds out what counts of a day whose newest index is damaged, from the segments that an older one has and those of a listing that
 * it does not know. What was deleted meanwhile was deleted because a newer index had said for long that others have its rows, or that nobody shall. A merged segment takes the place of those
 * that it was merged from, when each of them counts or is deleted; otherwise it is the rest of a merge that was not first. Throws
 * `internal` when one does not say what it was merged from.
 */
export function planRebuild(
  known: readonly IndexedSegment[],
  unknown: readonly ListedSegment[],
  { listed, nowMs }: { readonly listed: ReadonlySet<string>; readonly nowMs: number },
): Rebuild {
  const counted = new Map<string, Pick<IndexedSegment, "id" | "minNs" | "maxNs">>();
  const gone = new Map<string, GoneSegment>();
  const drop = (id: string, by: string | undefined) => {
    const segment = counted.get(id);
    if (segment === undefined) return;
    const { minNs, maxNs } = segment;
    counted.delete(id);
    gone.set(id, { id, minNs, maxNs, sinceMs: nowMs, by });
  };
  for (const segment of known) counted.set(segment.id, segment);
  const merged = unknown.filter(({ id }) => isMergedId(id));
  for (const segment of unknown) if (!isMergedId(segment.id)) counted.set(segment.id, segment);
  for (const one of inOrder(merged, listed)) {
    const isWhole = inputsOf(one).every((id) => counted.has(id) || !listed.has(id));
    if (!isWhole) continue;
    for (const id of inputsOf(one)) drop(id, one.id);
    counted.set(one.id, one);
  }
  for (const { id } of known) if (!listed.has(id)) drop(id, undefined);
  const add = unknown.filter(({ id }) => counted.has(id)).map(({ id }) => id);
  return { add, remove: [...gone.values()] };
}

function inputsOf({ id, replaces }: ListedSegment): readonly string[] {
  if (replaces === undefined) throw internal(`segment ${id} does not say what it was merged from`);
  return replaces;
}

/** Orders merged segments behind their inputs. Of two with the same inputs, the one whose inputs are deleted comes first, then the later one. */
function inOrder(
  merged: readonly ListedSegment[],
  listed: ReadonlySet<string>,
): readonly ListedSegment[] {
  const byId = new Map(merged.map((one) => [one.id, one]));
  const lacks = (one: ListedSegment) => inputsOf(one).some((id) => !listed.has(id));
  const ranked = [...merged].sort(
    (a, b) => Number(lacks(b)) - Number(lacks(a)) || b.modifiedMs - a.modifiedMs,
  );
  const ordered = new Set<ListedSegment>();
  const visit = (one: ListedSegment, depth: number) => {
    if (ordered.has(one) || depth > merged.length) return;
    for (const id of inputsOf(one)) {
      const input = byId.get(id);
      if (input !== undefined) visit(input, depth + 1);
    }
    ordered.add(one);
  };
  for (const one of ranked) visit(one, 0);
  return [...ordered];
}

export interface SweepBounds {
  /** Replaced segments are deleted after this time. Queries that used them have ended by then. */
  readonly graceMs: number;
  /** How long after that an ingester that still has them may come back. */
  readonly rememberMs: number;
}

interface Sweep {
  /** Objects to delete, because the newest index has listed them as gone for long enough. */
  readonly deletes: readonly string[];
  /** Files of merges that did not end, or were not first. The index must name them before they are deleted. */
  readonly orphans: readonly GoneSegment[];
  /** Ids that the index can forget. */
  readonly forget: readonly string[];
}

/** Plans what to delete from a day, by its newest index and a listing. */
export function planSweep(
  index: Pick<DayIndex, "tenant" | "gone" | "knows"> | undefined,
  objects: readonly ObjectInfo[],
  nowMs: number,
  { graceMs, rememberMs }: SweepBounds,
): Sweep {
  const keys = new Set(objects.map(({ key }) => key));
  const deletes = oldIndexes(objects, nowMs - graceMs);
  const forget: string[] = [];
  for (const gone of index?.gone ?? []) {
    const key = segmentKey({ ...gone, tenant: index!.tenant });
    if (gone.sinceMs > nowMs - graceMs) continue;
    if (keys.has(key)) deletes.push(key);
    else if (gone.sinceMs <= nowMs - graceMs - rememberMs) forget.push(gone.id);
  }
  const orphans: GoneSegment[] = [];
  for (const { key, modifiedMs } of objects) {
    const parsed = parseSegmentKey(key);
    if (parsed === undefined || !isMergedId(parsed.id) || index?.knows(parsed.id) === true)
      continue;
    if (modifiedMs > nowMs - graceMs) continue;
    const { id, minNs, maxNs } = parsed;
    orphans.push({ id, minNs, maxNs, sinceMs: nowMs, by: undefined });
  }
  return { deletes, orphans, forget };
}

/** Generations whose successor is older than the time. */
function oldIndexes(objects: readonly ObjectInfo[], beforeMs: number): string[] {
  const newestFirst = indexesOf(objects);
  return newestFirst
    .filter((_, i) => i > 0 && newestFirst[i - 1]!.modifiedMs < beforeMs)
    .map(({ key }) => key);
}
