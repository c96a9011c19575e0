import type { IndexedSegment } from "@skald/storage";

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
 */
export function planMerges(
  segments: readonly IndexedSegment[],
  isSettled: boolean,
  bounds: PlanBounds = planBounds,
): IndexedSegment[][] {
  const small = segments
    .filter(({ lineBytes }) => lineBytes < bounds.targetBytes / 2)
    .sort((a, b) => (a.minNs < b.minNs ? -1 : a.minNs > b.minNs ? 1 : a.id < b.id ? -1 : 1));
  if (isSettled) return cut(small, bounds).filter((group) => isWorthwhile(group, bounds));
  const bySize = new Map<number, IndexedSegment[]>();
  for (const segment of small) {
    const size = sizeOf(segment);
    bySize.set(size, [...(bySize.get(size) ?? []), segment]);
  }
  return [...bySize.values()].flatMap((some) =>
    cut(some, bounds).filter(
      (group) => group.length >= bounds.minInputs || linesOf(group) >= bounds.targetBytes / 2,
    ),
  );
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
