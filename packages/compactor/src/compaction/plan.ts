import { type IndexedSegment, inOrderOfArrival } from "@skald/storage";

/** How large merged segments become, and how many go into one. */
export interface PlanBounds {
  /** Bytes of lines of a segment that is large enough. */
  readonly targetBytes: number;
  /** Segments of one size that are worth a merge. */
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
/** Blocks of inputs that a merge has in memory. */
const maxHeldBytes = 128 * 1024 * 1024;
const heldPerInput = 1024 * 1024;
/** The last merge of a day is worth it when it makes the largest segment larger by this factor. */
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

/** Sees to it that merges do not change which of two segments arrived first, where that shows. */
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

  /** Those of the groups, or what becomes of them, that are worth it; none has a segment that an earlier one has. */
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

  /** A group with all that has to be merged with it, in order of arrival; several where that is too much. */
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

  /** A segment that is not in the group, arrived after its first and before one with which it has times in common. */
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
