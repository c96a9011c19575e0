import type { RowFilter, SourceRef, WindowDigests } from "@skald/contracts";
import type { Matcher, SegmentRef, TimeRange } from "@skald/model";
import { inOrderOfArrival } from "@skald/storage";
import { type MeetingSegments, meetingSegments } from "./meeting-segments.js";

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
  /** Earlier sources of the same place that may hold the same rows, but for those of `meets`. */
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
