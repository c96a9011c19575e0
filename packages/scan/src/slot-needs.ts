import type {
  DigestTask,
  MatchTask,
  RowHashTask,
  ScanPlan,
  ScanTask,
  TaskSource,
  VolumeTask,
} from "@skald/contracts";
import { type ColumnNeeds, keepsEveryRow, startLogScan } from "@skald/logql";
import type { TimeRange } from "@skald/model";
import {
  type CachedSegment,
  type ColumnSelection,
  isCached,
  type LocalRef,
  minuteNs,
  type SlotRange,
  SlotsMissing,
} from "@skald/storage";
import { blocksWithin } from "./dedup/minute-digests.js";
import { lookOf } from "./scans/matches.js";
import { MetricScans, measureScan, uncounted } from "./scans/metric.js";
import { cutBlocks, wholeRows } from "./scans/volumes.js";
import {
  columnsOf,
  factsOf,
  onlyTimestamps,
  readsLines,
  type ScanContext,
} from "./source/block-reader.js";
import { foundBlocks } from "./source/cache.js";
import { numberMinutes, streamKey } from "./source/row-mask.js";
import type { OpenSource, Source } from "./source/source.js";
import { byBestTime, candidatesOf, flagsOf, rangeOf, viewOf } from "./source/view.js";

const minute = BigInt(minuteNs);
const everyColumn: ColumnSelection = { timestamps: true, lines: true, metadata: "all" };
const onlyTimes = columnsOf(onlyTimestamps);

interface Sources<S extends TaskSource<LocalRef> = TaskSource<LocalRef>> {
  readonly sources: readonly S[];
}
type Check = Pick<ScanContext, "check">;

/**
 * The slots that a scan will read and the cache lacks, in all of its sources. Headers, masks, filters and the plan tell before a page is
 * read. For a scan that may end early it is only the beginning.
 */
export function missingOfScan(
  { plan, sources }: ScanTask<ScanPlan, LocalRef>,
  open: OpenSource,
  context: Check,
): SlotRange[] {
  return inEach({ sources }, (scanned, ref) => {
    context.check();
    const view = viewOf(open(ref), scanned, plan);
    const findings = foundBlocks(plan, scanned);
    if ("log" in plan) {
      const scan = startLogScan(plan);
      const candidates = candidatesOf(view, rangeOf(plan), { formula: scan.formula }).filter(
        (one) => !findings?.refuses(one, view.source.runs(one.block)),
      );
      candidates.sort(byBestTime(plan.direction));
      // Where every row counts, the times alone tell which blocks are read; else columns of fields may.
      const first = candidates[0] && scan.narrowNeeds(factsOf(view.source, candidates[0].block));
      const columns = keepsEveryRow(plan) ? onlyTimes : columnsOf(first ?? scan.needs);
      return missingIn(view.source, blocksOf(candidates), columns, ref.aheadBytes);
    }
    const found = findings?.blocks;
    return new MetricScans(plan).split(view).flatMap(({ scan, candidates }) => {
      const left = blocksOf(uncounted(scan, view, candidates, context));
      const known = left.filter((block) => found?.has(block));
      const unknown = left.filter((block) => found?.has(block) !== true);
      return [
        ...missingIn(view.source, known, onlyTimes),
        ...missingOfNeeds(view.source, unknown, scan.needs),
      ];
    });
  });
}

/** The missing indexes and filters of sources that a scan is measured by. */
export function missingOfMeasure(
  task: ScanTask<ScanPlan, LocalRef>,
  open: OpenSource,
  context: Check,
): SlotRange[] {
  return inEach(task, (scanned) => {
    measureScan({ ...task, sources: [scanned] }, open, context);
    return [];
  });
}

/** The missing indexes, the missing times in blocks that headers cannot count, and all of those that other sources share. */
export function missingOfVolumes(
  { plan, sources }: VolumeTask<LocalRef>,
  open: OpenSource,
  context: Check,
): SlotRange[] {
  return inEach({ sources }, (scanned, ref) => {
    const view = viewOf(open(ref), scanned, plan);
    const { cut, shared } = cutBlocks(view, plan, context);
    return [
      ...missingIn(view.source, blocksOf(cut), onlyTimes),
      ...missingIn(view.source, blocksOf(shared), columnsOf(wholeRows)),
    ];
  });
}

/** The missing indexes of sources. */
export function missingIndexes(task: Sources, open: OpenSource): SlotRange[] {
  return inEach(task, (_, ref) => {
    open(ref);
    return [];
  });
}

/** The missing times of all rows of sources. */
export function missingTimes(task: Sources, open: OpenSource): SlotRange[] {
  return inEach(task, (_, ref) => {
    const source = open(ref);
    const blocks = Array.from({ length: source.blockCount }, (_, block) => block);
    return missingIn(source, blocks, onlyTimes);
  });
}

/** The missing indexes of sources, and the missing blocks of streams without digests. */
export function missingDigests(task: DigestTask<LocalRef>, open: OpenSource): SlotRange[] {
  const { matchers, fromNs, toNs } = task;
  const range = { fromNs: (fromNs / minute) * minute, toNs: (toNs / minute + 1n) * minute };
  return missingRows(task, range, open, (source) =>
    source.streams.match(matchers).filter((stream) => source.digests?.(stream) === undefined),
  );
}

/** The missing indexes of sources, and the missing blocks with rows to hash. */
export function missingRowHashes(task: RowHashTask<LocalRef>, open: OpenSource): SlotRange[] {
  const numbers = numberMinutes(task.wanted);
  return missingRows(task, task, open, ({ streams }) =>
    streams.match([]).filter((stream) => numbers.has(streamKey(streams, stream))),
  );
}

/** All missing columns of the blocks with rows of some streams. */
function missingRows(
  task: Sources,
  { fromNs, toNs }: TimeRange,
  open: OpenSource,
  streamsOf: (source: Source) => Uint32Array,
): SlotRange[] {
  return inEach(task, (_, ref) => {
    const source = open(ref);
    const wanted = flagsOf(streamsOf(source), source.streams.count);
    const [from, to] = [Number(fromNs - source.baseNs), Number(toNs - source.baseNs)];
    return missingIn(source, blocksWithin(source, wanted, from, to), everyColumn);
  });
}

/** The missing blocks that filters have to look at. */
export function missingOfMatches(
  { filters, range, sources }: MatchTask<LocalRef>,
  open: OpenSource,
  context: Check,
): SlotRange[] {
  return filters.flatMap((filter) =>
    inEach({ sources }, (_, ref) => {
      const source = open(ref);
      const look = lookOf({ source, ref, filter, range }, context);
      if (look === undefined) return [];
      const read = look.candidates.filter((candidate) => !look.isKnown(candidate));
      return missingIn(source, blocksOf(read), columnsOf(look.match.needs));
    }),
  );
}

/** Puts together what looks at the sources of the cache miss, or fail without. */
function inEach<S extends TaskSource<LocalRef>>(
  { sources }: Sources<S>,
  look: (scanned: S, ref: CachedSegment) => readonly SlotRange[],
): SlotRange[] {
  return sources.flatMap((scanned) => {
    const { ref } = scanned;
    if (!isCached(ref)) return [];
    try {
      return look(scanned, ref);
    } catch (error) {
      if (error instanceof SlotsMissing) return error.ranges;
      throw error;
    }
  });
}

function missingIn(
  source: Source,
  blocks: readonly number[],
  columns: ColumnSelection,
  maxBytes = Number.POSITIVE_INFINITY,
): SlotRange[] {
  return source.cached?.missing(blocks, columns, maxBytes) ?? [];
}

/** The same for a scan that needs the lines of some blocks only. */
function missingOfNeeds(
  source: Source,
  blocks: readonly number[],
  needs: ColumnNeeds,
): SlotRange[] {
  const unread = blocks.filter((block) => !readsLines(source, needs, block));
  const read = unread.length === 0 ? blocks : blocks.filter((block) => !unread.includes(block));
  return [
    ...missingIn(source, read, columnsOf(needs)),
    ...missingIn(source, unread, columnsOf({ ...needs, lines: false })),
  ];
}

function blocksOf(candidates: readonly { readonly block: number }[]): number[] {
  return candidates.map(({ block }) => block);
}
