import type {
  DigestTask,
  MatchTask,
  RowHashTask,
  ScanPlan,
  ScanTask,
  StreamTask,
  VolumeTask,
} from "@skald/contracts";
import { keepsEveryRow, startLogScan, type startMetricScan } from "@skald/logql";
import type { ReadStats, TimeRange } from "@skald/model";
import {
  type ColumnSelection,
  isCached,
  type LocalRef,
  minuteNs,
  type SlotRange,
  SlotsMissing,
  slotBytes,
} from "@skald/storage";
import { blocksWithin } from "../dedup/minute-digests.js";
import { onlyTimestamps } from "../plans/limit-pushdown.js";
import { MetricScans } from "../plans/metric-scans.js";
import { withoutRefused } from "../plans/needle-skip.js";
import { lookOf } from "../plans/scan-matches.js";
import { measureScan, uncounted } from "../plans/scan-metric.js";
import { numberMinutes, streamKey } from "../source/minutes.js";
import type { OpenSource, Source } from "../source/source.js";
import { refsOf } from "../source/task-refs.js";
import { candidatesOf, flagsOf, rangeOf, type ScanContext, viewOf } from "../source/view.js";
import { cutBlocks } from "../volume/scan-volumes.js";

const minute = BigInt(minuteNs);
const everyColumn: ColumnSelection = { timestamps: true, lines: true, metadata: "all" };

type Sources = Pick<StreamTask<LocalRef>, "sources">;
type Check = Pick<ScanContext, "check">;

/**
 * What a scan will read that is not in the cache, of all its sources: headers, masks, filters and the plan say it before
 * a page is touched. Of a scan that may end early it is the beginning.
 */
export function missingOfScan(
  task: ScanTask<ScanPlan, LocalRef>,
  open: OpenSource,
  context: Check,
): SlotRange[] {
  const { plan } = task;
  return task.sources.flatMap((scanned) => {
    const { ref } = scanned;
    if (!isCached(ref)) return [];
    context.check();
    return missingOr(() => {
      const view = viewOf(open(ref), scanned, plan);
      const inRange = candidatesOf(view, rangeOf(plan));
      if ("log" in plan) {
        const scan = startLogScan(plan);
        const candidates = withoutRefused(view, inRange, scan.formula);
        const backward = plan.direction === "backward";
        candidates.sort((a, b) => (backward ? b.maxTime - a.maxTime : a.minTime - b.minTime));
        // Where every row counts, their times alone say which blocks are read.
        const columns = keepsEveryRow(plan) ? onlyTimestamps : columnsOf(scan.needs);
        return missingIn(view.source, blocksOf(candidates), columns, ref.aheadBytes);
      }
      return new MetricScans(plan).split(view, inRange).flatMap(({ scan, candidates }) => {
        const left = uncounted(scan, view, candidates, context);
        return missingIn(view.source, blocksOf(left), columnsOf(scan.needs));
      });
    });
  });
}

/** What is not there of the indexes and filters of sources that a scan is measured by. */
export function missingOfMeasure(
  task: ScanTask<ScanPlan, LocalRef>,
  open: OpenSource,
  context: Check,
): SlotRange[] {
  return task.sources.flatMap((scanned) => {
    if (!isCached(scanned.ref)) return [];
    return missingOr(() => {
      measureScan({ ...task, sources: [scanned] }, open, context);
      return [];
    });
  });
}

/** What is not there of indexes, and of the times in blocks that headers cannot count. */
export function missingOfVolumes(
  { plan, sources }: VolumeTask<LocalRef>,
  open: OpenSource,
  context: Check,
): SlotRange[] {
  return sources.flatMap((scanned) => {
    const { ref } = scanned;
    if (!isCached(ref)) return [];
    return missingOr(() => {
      const view = viewOf(open(ref), scanned, plan);
      return missingIn(view.source, blocksOf(cutBlocks(view, plan, context)), onlyTimestamps);
    });
  });
}

/** What is not there of the indexes of sources. */
export function missingIndexes(task: Sources, open: OpenSource): SlotRange[] {
  return refsOf(task).flatMap((ref) => {
    if (!isCached(ref)) return [];
    return missingOr(() => {
      open(ref);
      return [];
    });
  });
}

/** What is not there of the times of all rows of sources. */
export function missingTimes(task: Sources, open: OpenSource): SlotRange[] {
  return refsOf(task).flatMap((ref) => {
    if (!isCached(ref)) return [];
    return missingOr(() => {
      const source = open(ref);
      const blocks = Array.from({ length: source.blockCount }, (_, block) => block);
      return missingIn(source, blocks, onlyTimestamps);
    });
  });
}

/** What is not there of the indexes of sources, and of blocks of streams without digests. */
export function missingDigests(task: DigestTask<LocalRef>, open: OpenSource): SlotRange[] {
  const { matchers, fromNs, toNs } = task;
  const { from, to } = { from: (fromNs / minute) * minute, to: (toNs / minute + 1n) * minute };
  return missingRows(task, { fromNs: from, toNs: to }, open, (source) =>
    source.streams.match(matchers).filter((stream) => source.digests?.(stream) === undefined),
  );
}

/** What is not there of the indexes of sources, and of blocks with rows that are to be hashed. */
export function missingRowHashes(task: RowHashTask<LocalRef>, open: OpenSource): SlotRange[] {
  const numbers = numberMinutes(task.wanted);
  return missingRows(task, task, open, ({ streams }) =>
    streams.match([]).filter((stream) => numbers.has(streamKey(streams, stream))),
  );
}

/** What is not there of all columns in the blocks with rows of some streams. */
function missingRows(
  task: Sources,
  { fromNs, toNs }: TimeRange,
  open: OpenSource,
  streamsOf: (source: Source) => Uint32Array,
): SlotRange[] {
  return refsOf(task).flatMap((ref) => {
    if (!isCached(ref)) return [];
    return missingOr(() => {
      const source = open(ref);
      const wanted = flagsOf(streamsOf(source), source.streams.count);
      const times = [fromNs, toNs].map((ns) => Number(ns - source.baseNs)) as [number, number];
      return missingIn(source, blocksWithin(source, wanted, ...times), everyColumn);
    });
  });
}

/** What is not there of the blocks that filters have to look at. */
export function missingOfMatches(
  task: MatchTask<LocalRef>,
  open: OpenSource,
  context: Check,
): SlotRange[] {
  const { filters, range } = task;
  const [ref] = refsOf(task) as [LocalRef];
  if (!isCached(ref)) return [];
  return filters.flatMap((filter) =>
    missingOr(() => {
      const source = open(ref);
      const look = lookOf(source, ref, filter, range, context);
      if (look === undefined) return [];
      const read = look.candidates.filter((candidate) => !look.isKnown(candidate));
      return missingIn(source, blocksOf(read), columnsOf(look.match.needs));
    }),
  );
}

/** Throws SlotsMissing unless nothing is. */
export function refuseMissing(ranges: readonly SlotRange[]): void {
  if (ranges.length > 0) throw new SlotsMissing(ranges);
}

/** Runs a scan, and counts what it read from the cache and what was fetched for it before. */
export function countCached<T extends { readonly stats: ReadStats }>(
  { sources: scanned }: Pick<ScanTask<ScanPlan, LocalRef>, "sources">,
  open: OpenSource,
  scan: () => T,
): T {
  const cached = scanned.map(({ ref }) => ref).filter((ref) => isCached(ref));
  const first = cached[0];
  if (first === undefined) return scan();
  const sources = [...new Set(cached.map(open))];
  const slotsRead = () => sources.reduce((sum, one) => sum + (one.cached?.slotsRead() ?? 0), 0);
  const before = slotsRead();
  const outcome = scan();
  const { stats } = outcome;
  const { requests, slots, bytes, ns } = first.fetched;
  const hits = Math.max(0, slotsRead() - before - slots);
  stats.fetchedRanges += requests;
  stats.fetchedPages += slots;
  stats.fetchedBytes += bytes;
  stats.downloadNs += ns;
  stats.cachedPages += hits;
  stats.cachedBytes += hits * slotBytes;
  return outcome;
}

/** What a look at a source misses, or cannot do without. */
function missingOr(look: () => SlotRange[]): readonly SlotRange[] {
  try {
    return look();
  } catch (error) {
    if (error instanceof SlotsMissing) return error.ranges;
    throw error;
  }
}

function missingIn(
  source: Source,
  blocks: readonly number[],
  columns: ColumnSelection,
  maxBytes = Number.POSITIVE_INFINITY,
): SlotRange[] {
  return source.cached?.missing(blocks, columns, maxBytes) ?? [];
}

function blocksOf(candidates: readonly { readonly block: number }[]): number[] {
  return candidates.map(({ block }) => block);
}

function columnsOf({ metadata, ...needs }: ReturnType<typeof startMetricScan>["needs"]) {
  return { ...needs, metadata: metadata === true ? ("all" as const) : metadata };
}
