import {
  type DayIndex,
  type GoneSegment,
  indexesOf,
  isMergedId,
  type ObjectInfo,
  parseSegmentKey,
  segmentKey,
} from "@skald/storage";

export interface SweepBounds {
  /** What counts no more is deleted after this time; queries that knew it have ended by then. */
  readonly graceMs: number;
  /** How long after that an ingester may come back that has it still. */
  readonly rememberMs: number;
}

export interface Sweep {
  /** Objects to delete: the newest index has said so for long enough. */
  readonly deletes: readonly string[];
  /** What merges left behind that did not end, or were not first: to be named in the index before it is deleted. */
  readonly orphans: readonly GoneSegment[];
  /** Ids that the index need not name any more. */
  readonly forget: readonly string[];
}

/** What is to be cleared of a day, by its newest index and a listing. */
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

/** Generations whose next one is older than the time. */
function oldIndexes(objects: readonly ObjectInfo[], beforeMs: number): string[] {
  const newestFirst = indexesOf(objects);
  return newestFirst
    .filter((_, i) => i > 0 && newestFirst[i - 1]!.modifiedMs < beforeMs)
    .map(({ key }) => key);
}
