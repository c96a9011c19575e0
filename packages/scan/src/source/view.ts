import type { RowMask, ScanPlan, ScanSource, VolumePlan } from "@skald/contracts";
import { isInShard, type StreamLabels } from "@skald/logql";
import {
  emptyReadStats,
  type Labels,
  type ReadStats,
  type RunTable,
  type TimeRange,
} from "@skald/model";
import type { BlockRange, LocalRef } from "@skald/storage";
import type { ScanMemory } from "./page-memory.js";
import { projectedLabels } from "./projected-labels.js";
import { countWithin, uniteMasks } from "./row-mask.js";
import { skipRows } from "./skip-rows.js";
import { labelsOnce, type Source } from "./source.js";
import { tenantLabelName, withTenantLabel } from "./tenant-label.js";

/** What a scan has besides its task. */
export interface ScanContext {
  /** Throws when the query was cancelled; called between blocks. */
  readonly check: () => void;
  /** Pages are decompressed into it; into fresh memory when absent. */
  readonly memory?: ScanMemory;
}

/** What a plan sees of a source: its streams, its blocks, and rows to leave out. */
export interface SourceView {
  readonly source: Source;
  readonly sequence: number;
  readonly blocks: BlockRange;
  readonly streams: StreamLabels;
  readonly streamCount: number;
  /** Those of the plan, ascending. */
  readonly selected: Uint32Array;
  /** Rows of a block to leave out, ascending. */
  excludedOf(block: number): Uint32Array | undefined;
  /** How many rows of a run those are. */
  excludedIn(block: number, run: number): number;
}

/** A block with runs of the query in it. */
export interface Candidate {
  readonly block: number;
  readonly runs: Uint32Array;
  /** Over the runs, ns since the base, inclusive. */
  readonly minTime: number;
  readonly maxTime: number;
  readonly rows: number;
  readonly lineBytes: number;
}

/** The rows of a plan lie in this range. */
export function rangeOf(plan: ScanPlan): TimeRange {
  return { fromNs: plan.fromNs, toNs: plan.toNs };
}

/** Which streams of a source are looked at. */
type StreamChoice = ScanPlan | Pick<VolumePlan, "matchers">;

export function viewOf(
  source: Source,
  scanned: ScanSource<LocalRef>,
  plan: StreamChoice,
): SourceView {
  const { part = { from: 0, to: 1 }, sequence, tenantLabel } = scanned;
  let selected = source.streams.match("log" in plan ? plan.log.matchers : plan.matchers);
  const shard = "shard" in plan ? plan.shard : undefined;
  if (shard !== undefined) {
    selected = selected.filter((stream) => isInShard(shard, source.streams.text(stream)));
  }
  const edge = (share: number) => Math.floor(source.blockCount * share);
  const blocks = { from: edge(part.from), to: edge(part.to) };
  const excludedOf = rowsByBlock(maskOf(source, scanned, selected, blocks));
  return {
    source,
    sequence,
    blocks,
    streams: streamLabels(source, tenantLabel),
    streamCount: selected.length,
    selected,
    excludedOf,
    excludedIn: (block, run) => {
      const excluded = excludedOf(block);
      if (excluded === undefined) return 0;
      const { rowStart } = source.runs(block);
      return countWithin(excluded, rowStart[run] as number, rowStart[run + 1] as number);
    },
  };
}

/** Whether all rows of a run are counted already, so that it need not be looked at. */
export type RunCounter = (block: number, run: number, table: RunTable) => boolean;

/**
 * The blocks of a view with rows in a range that are neither all left out nor counted as they are found. Those that are left out count as
 * duplicates.
 */
export function candidatesOf(
  view: SourceView,
  range: TimeRange,
  stats?: ReadStats,
  isCounted?: RunCounter,
): Candidate[] {
  const { source } = view;
  const from = Number(range.fromNs - source.baseNs);
  const to = Number(range.toNs - source.baseNs);
  const candidates: Candidate[] = [];
  for (const { block, runs: selected } of selectedRuns(view)) {
    const table = source.runs(block);
    const { minTime, maxTime } = table;
    let count = 0;
    for (let i = 0; i < selected.length; i++) {
      const run = selected[i]!;
      if (maxTime[run]! < from || minTime[run]! >= to) continue;
      if (isCounted === undefined || !isCounted(block, run, table)) selected[count++] = run;
    }
    if (count === 0) continue;
    let runs = isFirstRun(selected, count) ? firstRun : selected.slice(0, count);
    if (view.excludedOf(block) !== undefined) {
      runs = runs.filter((run) => {
        const excluded = view.excludedIn(block, run);
        if (stats !== undefined) stats.duplicates += excluded;
        return excluded < (table.rowStart[run + 1] as number) - (table.rowStart[run] as number);
      });
    }
    if (runs.length > 0) candidates.push(candidateOf(block, runs, table));
  }
  return candidates;
}

export function candidateOf(block: number, runs: Uint32Array, table: RunTable): Candidate {
  let minTime = Number.POSITIVE_INFINITY;
  let maxTime = Number.NEGATIVE_INFINITY;
  let rows = 0;
  let lineBytes = 0;
  for (let i = 0; i < runs.length; i++) {
    const run = runs[i]!;
    minTime = Math.min(minTime, table.minTime[run]!);
    maxTime = Math.max(maxTime, table.maxTime[run]!);
    rows += table.rowStart[run + 1]! - table.rowStart[run]!;
    lineBytes += table.lineBytes[run]!;
  }
  return { block, runs, minTime, maxTime, rows, lineBytes };
}

/** The rows of a candidate that a scan may use. */
export function selectionOf(view: SourceView, { block, runs }: Candidate) {
  const excluded = view.excludedOf(block);
  return excluded === undefined ? { runs } : { runs, excluded };
}

/** Statistics of a scan before its first block. */
export function startStats(views: readonly SourceView[]): ReadStats {
  const sourcesScanned = views.filter(({ blocks }) => blocks.from === 0 && blocks.to > 0).length;
  return { ...emptyReadStats(), sourcesScanned, batches: 1 };
}

export function countRead(stats: ReadStats, view: SourceView, read: Candidate, lines: boolean) {
  const { source } = view;
  const bytes = lines ? read.lineBytes : 0;
  if (source.kind === "head") {
    stats.headLines += read.rows;
    stats.headBytes += bytes;
    return;
  }
  stats.decompressedLines += read.rows;
  stats.decompressedBytes += bytes;
  stats.compressedBytes += source.storedBytes(read.block);
}

interface SelectedRuns {
  readonly block: number;
  /** Gone when the next block is asked for, and free to be shortened before. */
  readonly runs: Uint32Array;
}

/** The runs of most blocks of a large segment: a list of its own for each takes longer than all else. */
const firstRun = Uint32Array.of(0);

function isFirstRun(runs: Uint32Array, count: number): boolean {
  return count === 1 && runs[0] === 0;
}

/** Below this share of the streams their runs are searched for, instead of a look at each run. */
const fewStreams = 1 / 32;

function* selectedRuns(view: SourceView): Generator<SelectedRuns> {
  const { source, selected, blocks } = view;
  const { count } = source.streams;
  if (source.forEachRun !== undefined && selected.length < count * fewStreams) {
    yield* searchedRuns(view, source.forEachRun);
    return;
  }
  // A head has runs of streams that were not selected, too.
  const isAll = source.kind === "segment" && selected.length === count;
  const flags = isAll ? undefined : flagsOf(selected, count);
  let runs = new Uint32Array(256);
  for (let block = blocks.from; block < blocks.to; block++) {
    const { count: runCount, stream } = source.runs(block);
    if (runs.length < runCount) runs = new Uint32Array(runCount * 2);
    let length = 0;
    for (let r = 0; r < runCount; r++) {
      if (flags === undefined || flags[stream[r]!] === 1) runs[length++] = r;
    }
    yield { block, runs: isFirstRun(runs, length) ? firstRun : runs.subarray(0, length) };
  }
}

/** The streams ascend over the runs, and so do the runs of ascending streams. */
function* searchedRuns(
  { selected, blocks }: SourceView,
  forEachRun: NonNullable<Source["forEachRun"]>,
): Generator<SelectedRuns> {
  const byBlock = new Map<number, number[]>();
  for (const stream of selected) {
    forEachRun(stream, (block, run) => {
      if (block < blocks.from || block >= blocks.to) return;
      const runs = byBlock.get(block);
      if (runs === undefined) byBlock.set(block, [run]);
      else runs.push(run);
    });
  }
  for (const [block, runs] of byBlock) yield { block, runs: Uint32Array.from(runs) };
}

/** By stream number, 1 for those that are in the list. */
export function flagsOf(streams: Uint32Array, count: number): Uint8Array {
  const flags = new Uint8Array(count);
  for (const stream of streams) flags[stream] = 1;
  return flags;
}

/** All rows to leave out, of the streams and blocks of a view. */
function maskOf(
  source: Source,
  { mask, skipped }: ScanSource<LocalRef>,
  selected: Uint32Array,
  blocks: BlockRange,
): RowMask | undefined {
  if (skipped === undefined) return mask;
  const rows = skipRows(source, skipped, selected, blocks);
  return mask === undefined ? rows : uniteMasks([mask, rows]);
}

function rowsByBlock(mask: RowMask | undefined) {
  const byBlock = new Map<number, Uint32Array>();
  mask?.blocks.forEach((block, i) => {
    byBlock.set(block, mask.rows[i] as Uint32Array);
  });
  return (block: number) => byBlock.get(block);
}

/** The same function for all blocks of the source: scans tell sources apart by it. */
export function streamLabels(
  { streams }: Pick<Source, "streams">,
  tenant: string | undefined,
): StreamLabels {
  const labels = labelsOnce(streams);
  const only = (names: readonly string[]) => projectedLabels(streams, names);
  if (tenant === undefined) return Object.assign((stream: number) => labels(stream), { only });
  const renamed = onceEach((own: Labels) => withTenantLabel(own, tenant));
  return Object.assign((stream: number) => renamed(labels(stream)), {
    only: (names: readonly string[]) => {
      const own = only([...names, tenantLabelName]);
      const kept = new Set(names);
      const reduced = onceEach((labels: Labels) =>
        keepNames(withTenantLabel(labels, tenant), kept),
      );
      return (stream: number) => reduced(own(stream));
    },
  });
}

/** The function, called once for each label set. */
function onceEach(make: (labels: Labels) => Labels): (labels: Labels) => Labels {
  const known = new Map<Labels, Labels>();
  return (labels) => {
    let made = known.get(labels);
    if (made === undefined) {
      made = make(labels);
      known.set(labels, made);
    }
    return made;
  };
}

function keepNames({ names, values }: Labels, kept: ReadonlySet<string>): Labels {
  const left = names.flatMap((name, i) => (kept.has(name) ? [i] : []));
  return { names: left.map((i) => names[i]!), values: left.map((i) => values[i]!) };
}
