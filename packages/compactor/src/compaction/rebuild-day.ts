import { internal } from "@skald/model";
import { type GoneSegment, type IndexedSegment, isMergedId } from "@skald/storage";

/** A segment that a listing has. */
export interface ListedSegment extends Pick<IndexedSegment, "id" | "minNs" | "maxNs"> {
  readonly modifiedMs: number;
  /** Ids of the segments that it was merged from; undefined where that is not known. */
  readonly replaces?: readonly string[] | undefined;
}

/** What makes the index before a damaged one, or none, say what the bucket has. */
export interface Rebuild {
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

/** Those that were merged from others behind these; of two from the same, that whose inputs are deleted, then the later one. */
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
