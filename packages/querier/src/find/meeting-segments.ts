import type { SegmentRef } from "@skald/model";

/** Segments that share times, to be compared all at once. */
export interface MeetingSegments {
  /** In order of arrival. */
  readonly sources: readonly SegmentRef[];
  /** Those before this place are compared with in other groups, and here only for the sake of the others. */
  readonly wantedFrom: number;
}

/** Segments that a group has at least: a query that ends early compares no more than a few. */
const minWanted = 8;
/** A group ends where no more than this share of it reaches into the next one, which has to open these again. */
const maxReach = 1 / 4;

/** Nor do these have more bytes than so many times its own, while it has not become this large. */
const maxReachBytes = 4;
const manyWanted = 128;

/**
 * Groups segments, in the order of their first times, so that each is compared with the earlier ones that it shares times with: in its group.
 * One that shares its time with no earlier one is in none; nor are those between which surely no row is shared.
 */
export function meetingSegments(refs: readonly SegmentRef[]): Map<SegmentRef, MeetingSegments> {
  const groups = new Map<SegmentRef, MeetingSegments>();
  const { meeting, met } = meetingOf(comparedOf(refs));
  let earlier: SegmentRef[] = [];
  let wanted: SegmentRef[] = [];
  const close = () => {
    const group = { sources: [...earlier, ...wanted], wantedFrom: earlier.length };
    for (const ref of wanted) if (met.has(ref)) groups.set(ref, group);
    wanted = [];
  };
  let nextLook = minWanted;
  for (const ref of meeting) {
    if (wanted.length >= nextLook) {
      const reaching = [...earlier, ...wanted].filter(({ maxNs }) => maxNs >= ref.minNs);
      const isShort = reaching.length <= wanted.length * maxReach;
      const isSmall = bytesOf(reaching) <= maxReachBytes * bytesOf(wanted);
      if (isShort && (isSmall || wanted.length >= manyWanted)) {
        close();
        earlier = reaching;
        nextLook = minWanted;
      } else {
        nextLook += minWanted;
      }
    }
    wanted.push(ref);
  }
  if (wanted.length > 0) close();
  return groups;
}

function bytesOf(refs: readonly SegmentRef[]): number {
  return refs.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
}

/** Those that are not apart, and the others that share times with one of them. */
function comparedOf(refs: readonly SegmentRef[]): readonly SegmentRef[] {
  const unknown = refs.filter(({ isApart }) => isApart !== true);
  if (unknown.length === 0 || unknown.length === refs.length) return unknown;
  // How far those reach that begin before each, and which is the next to begin.
  let reach: bigint | undefined;
  let next = 0;
  return refs.filter(({ isApart, minNs, maxNs }) => {
    for (; next < unknown.length && unknown[next]!.minNs <= minNs; next++) {
      const end = unknown[next]!.maxNs;
      if (reach === undefined || end > reach) reach = end;
    }
    if (isApart !== true || (reach !== undefined && reach >= minNs)) return true;
    return next < unknown.length && unknown[next]!.minNs <= maxNs;
  });
}

/** Those that share times with another one, and with an earlier one. */
function meetingOf(refs: readonly SegmentRef[]) {
  const met = new Set<SegmentRef>();
  let reach: bigint | undefined;
  const meeting = refs.filter((ref, i) => {
    const { minNs, maxNs } = ref;
    if (reach !== undefined && reach >= minNs) met.add(ref);
    if (reach === undefined || maxNs > reach) reach = maxNs;
    const next = refs[i + 1];
    return met.has(ref) || (next !== undefined && next.minNs <= maxNs);
  });
  return { meeting, met };
}
