import type { RowFilter, SourceRef, WindowDigests } from "@skald/contracts";
import type { Matcher, SegmentRef, TimeRange } from "@skald/model";
import { inOrderOfArrival } from "@skald/storage";

/** A source, and who holds it: that side scans it, and its statistics are counted there. */
export interface FoundSource {
  readonly ref: SourceRef;
  readonly side: Side;
}

export type Side = "ingester" | "store";

/** What a query found of one tenant in several places that may hold the same rows. */
export interface ReplicaGroup extends TimeRange {
  readonly matchers: readonly Matcher[];
  /** In the order of the query. */
  readonly sources: readonly FoundSource[];
  /** Digests that ingesters told with their sources. */
  readonly known?: readonly WindowDigests[];
}

/** A source with its place in a query. */
export interface PlannedSource extends FoundSource {
  /** Order of arrival among the sources of the query. */
  readonly sequence: number;
  /** Earlier sources of the same place that may hold the same rows and are not in `meets`. */
  readonly older: readonly FoundSource[];
  /** Segments with which it may have rows in common, when there are any. */
  readonly meets?: MeetingSegments;
  /** Those of other places may hold the same rows too, when there are several. */
  readonly replicas?: ReplicaGroup;
  /** Rows that were deleted and must not be seen; absent when there are none. */
  readonly deleted?: readonly RowFilter[];
  /** Set when the streams shall carry the tenant's name. */
  readonly tenantLabel?: string;
}

/**
 * Orders sources of one tenant for a query, segments by the time of their first row, then heads: which of them meet. Numbers them by
 * arrival, which decides between rows of equal time. Only sources that overlap in time can share rows; with one writer and
 * data in order those are few.
 */
export function orderSources(
  ingester: readonly SourceRef[],
  store: readonly SourceRef[],
): PlannedSource[] {
  const found: FoundSource[] = [
    ...ingester.map((ref) => ({ ref, side: "ingester" as const })),
    ...store.map((ref) => ({ ref, side: "store" as const })),
  ].sort((a, b) => compareFirst(a.ref, b.ref));
  const sequences = sequencesOf(found);
  // Every side can read a segment that is no single ingester's.
  const isShared = ({ ref }: FoundSource) =>
    ref.kind === "segment" && instanceOf(ref) === undefined;
  const groups = meetingSegments(found.filter(isShared).map(({ ref }) => ref as SegmentRef));
  let open: FoundSource[] = [];
  return found.map((source, place) => {
    const { ref } = source;
    const sequence = sequences?.get(ref) ?? place;
    const meets = groups.get(ref as SegmentRef);
    if (isShared(source)) {
      return { ...source, sequence, older: [], ...(meets === undefined ? {} : { meets }) };
    }
    // Segments begin in ascending order: those that ended before this one cannot meet a later one, only heads can.
    if (ref.kind === "segment") open = open.filter((older) => older.ref.maxNs >= ref.minNs);
    else open = found.slice(0, place);
    const instance = instanceOf(ref);
    const older = open.filter((one) => overlap(one.ref, ref) && instanceOf(one.ref) === instance);
    open.push(source);
    return { ...source, sequence, older };
  });
}

/** The ingester that a source is of, where there are several. */
export function instanceOf(ref: SourceRef): string | undefined {
  if (ref.kind === "head") return ref.instance;
  return ref.location.kind === "file" ? ref.location.instance : undefined;
}

/** The places of sources in the order of their arrival; undefined when none has times in common with another. */
function sequencesOf(found: readonly FoundSource[]): Map<SourceRef, number> | undefined {
  let reach: bigint | undefined;
  const meets = found.some(({ ref: { minNs, maxNs } }) => {
    // Heads come behind segments that begin later.
    const isMet = reach !== undefined && minNs <= reach;
    if (reach === undefined || maxNs > reach) reach = maxNs;
    return isMet;
  });
  if (!meets) return undefined;
  const ordered = inOrderOfArrival(found.map(({ ref }) => ref));
  return new Map(ordered.map((ref, sequence) => [ref, sequence]));
}

function compareFirst(a: SourceRef, b: SourceRef): number {
  if (a.kind !== b.kind) return a.kind === "head" ? 1 : -1;
  if (a.minNs !== b.minNs) return a.minNs < b.minNs ? -1 : 1;
  return a.id < b.id ? -1 : 1;
}

function overlap(a: SourceRef, b: SourceRef): boolean {
  return a.minNs <= b.maxNs && b.minNs <= a.maxNs;
}

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

/** The segments that reach into the next group have at most this many times the bytes of the group, until it is large. */
const maxReachBytes = 4;
const manyWanted = 128;

/**
 * Groups segments, in the order of their first times, so that each is compared with the earlier ones that it shares times with: in its group.
 * One that shares its time with no earlier one is in none; nor are those between which surely no row is shared.
 */
function meetingSegments(refs: readonly SegmentRef[]): Map<SegmentRef, MeetingSegments> {
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
