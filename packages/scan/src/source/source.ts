import type {
  RowMask,
  ScanKind,
  ScanPlan,
  ScanSource,
  TaskOf,
  TaskSource,
  VolumePlan,
} from "@skald/contracts";
import { isInShard, type StreamLabels } from "@skald/logql";
import {
  allOf,
  anyOf,
  type Block,
  emptyReadStats,
  type LevelCounts,
  type NeedleFormula,
  type ReadStats,
  type RunTable,
  type TimeRange,
  type TimeSlices,
} from "@skald/model";
import type {
  BlockRange,
  ColumnSelection,
  LabelTable,
  LocalRef,
  OpenedCachedSegment,
  PageMemory,
  PageSet,
  Segment,
  StreamDigests,
} from "@skald/storage";
import { countWithin, skipRows, uniteMasks } from "./row-mask.js";
import { isTenantLabel, streamLabels } from "./stream-labels.js";

/** Streams, block headers and blocks of one day of one tenant: a sealed segment or an unsealed head. */
export interface Source {
  readonly id: string;
  readonly kind: "segment" | "head";
  /** Start of the UTC day, ns since the epoch. */
  readonly baseNs: bigint;
  readonly blockCount: number;
  /** A head has only the streams that the ingester selected, under its own numbers. */
  readonly streams: LabelTable;
  /** Clears the flags of blocks that surely lack what the formula asks for; returns false when it can rule out nothing. */
  refuse(formula: NeedleFormula, wanted: Uint8Array): boolean;
  /** Digests of the rows of a stream; undefined when there are none. Absent where rows are still being added. */
  readonly digests?: (stream: number) => StreamDigests | undefined;
  /** A mark for each row of a block: rows with different marks differ. Undefined, or absent, when there are none. */
  readonly marks?: (block: number) => Uint32Array | undefined;
  /** Counts the rows of a run by `detected_level` without reading a page; undefined when the source does not know. */
  levels(block: number, run: number): LevelCounts | undefined;
  /** Counts the rows of a run by slices of time without reading a page; undefined when the source does not know. */
  slices(block: number, run: number): TimeSlices | undefined;
  /** Names of the structured metadata in a block. */
  metadataNames(block: number): readonly string[];
  runs(block: number): RunTable;
  /** Calls back for each run of a stream, in order, without reading other runs; absent where runs are in no order. */
  readonly forEachRun?: (stream: number, visit: (block: number, run: number) => void) => void;
  /** With `memory`, columns are decompressed into it and are valid until it is used again. */
  block(block: number, pages?: PageSet, memory?: PageMemory): Block;
  /** Reads columns of a range of blocks ahead, in few reads; undefined when they are in memory anyway. */
  readPages(blocks: BlockRange, columns: ColumnSelection, memory?: PageMemory): PageSet | undefined;
  /** Stored bytes of a block; 0 when it is in memory. */
  storedBytes(block: number): number;
  /** Set for a segment that may be only partly on this machine. */
  readonly cached?: CachedReads;
}

type CachedReads = Pick<OpenedCachedSegment, "missing" | "slotsRead">;

/** Opens the source that a reference names, on this thread. */
export type OpenSource = (ref: LocalRef) => Source;

/** A segment as a source. Its reader must be synchronous. */
export function segmentSource(segment: Segment, cached?: CachedReads): Source {
  return {
    id: segment.id,
    kind: "segment",
    baseNs: segment.baseNs,
    blockCount: segment.blockCount,
    streams: segment.streams,
    refuse: (formula, wanted) => segment.refuse(formula, wanted),
    digests: (stream) => segment.digests(stream),
    marks: (block) => segment.marks(block),
    levels: (block, run) => segment.levels(block, run),
    slices: (block, run) => segment.slices(block, run),
    metadataNames: (block) => segment.metadataNames(block),
    runs: (block) => segment.runs(block),
    forEachRun: (stream, visit) => segment.forEachRun(stream, visit),
    block: (block, pages, memory) => segment.block(block, pages, memory),
    readPages: (blocks, columns, memory) => segment.readPages(blocks, columns, memory),
    storedBytes: (block) => segment.header(block).storedBytes,
    ...(cached === undefined ? {} : { cached }),
  };
}

interface Sources<Ref> {
  readonly sources: readonly TaskSource<Ref>[];
}

/** The references of a task's sources. */
export function refsOf<Ref>({ sources }: Sources<Ref>): Ref[] {
  return sources.map(({ ref }) => ref);
}

/** The sources of a task with these references. */
export function sourcesOf<Ref>(refs: readonly Ref[]): TaskSource<Ref>[] {
  return refs.map((ref) => ({ ref }));
}

/** The same task with other references to its sources, in the same order. */
export function withRefs<K extends ScanKind, Ref>(
  task: Sources<unknown>,
  refs: readonly Ref[],
): TaskOf<K, Ref> {
  const sources = task.sources.map((source, i) => ({ ...source, ref: refs[i] }));
  return { ...task, sources } as unknown as TaskOf<K, Ref>;
}

/** What a plan sees of a source: its streams, its blocks, and the rows to leave out. */
export interface SourceView {
  readonly source: Source;
  readonly sequence: number;
  readonly blocks: BlockRange;
  readonly streams: StreamLabels;
  readonly streamCount: number;
  /** The streams of the plan, ascending. */
  readonly selected: Uint32Array;
  /** Rows of a block to leave out, ascending. */
  excludedOf(block: number): Uint32Array | undefined;
  /** Counts the rows of a run to leave out. */
  excludedIn(block: number, run: number): number;
}

/** The range that the rows of a plan lie in. */
export function rangeOf(plan: ScanPlan): TimeRange {
  return { fromNs: plan.fromNs, toNs: plan.toNs };
}

/** Selects the streams and blocks of a source for a plan. */
export function viewOf(
  source: Source,
  scanned: ScanSource<LocalRef>,
  plan: ScanPlan | Pick<VolumePlan, "matchers">,
): SourceView {
  const { part = { from: 0, to: 1 }, sequence, tenantLabel, mask, skipped } = scanned;
  let selected = source.streams.match("log" in plan ? plan.log.matchers : plan.matchers);
  const shard = "shard" in plan ? plan.shard : undefined;
  if (shard !== undefined) {
    selected = selected.filter((stream) => isInShard(shard, source.streams.text(stream)));
  }
  const edge = (share: number) => Math.floor(source.blockCount * share);
  const blocks = { from: edge(part.from), to: edge(part.to) };
  const masks: RowMask[] = mask === undefined ? [] : [mask];
  if (skipped !== undefined) masks.push(skipRows(source, skipped, selected, blocks));
  const excluded = uniteMasks(masks);
  const byBlock = new Map<number, Uint32Array>();
  excluded.blocks.forEach((block, i) => {
    byBlock.set(block, excluded.rows[i]!);
  });
  return {
    source,
    sequence,
    blocks,
    streams: streamLabels(source.streams, tenantLabel),
    streamCount: selected.length,
    selected,
    excludedOf: (block) => byBlock.get(block),
    excludedIn: (block, run) => {
      const rows = byBlock.get(block);
      if (rows === undefined) return 0;
      const { rowStart } = source.runs(block);
      return countWithin(rows, rowStart[run]!, rowStart[run + 1]!);
    },
  };
}

/** A block with runs of the query in it. */
export interface Candidate {
  readonly block: number;
  readonly runs: Uint32Array;
  /** Least and greatest time of the runs, ns since the base, inclusive. */
  readonly minTime: number;
  readonly maxTime: number;
  readonly rows: number;
  readonly lineBytes: number;
}

/** Returns true when it has counted all rows of a run, so that nobody needs to read them. */
export type RunCounter = (block: number, run: number, table: RunTable) => boolean;

/**
 * Finds the blocks of a view with rows in a range. Runs that `isCounted` has counted, and runs whose rows are all left out, are not
 * in the result. Rows that are left out count as duplicates in the statistics.
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
        return excluded < table.rowStart[run + 1]! - table.rowStart[run]!;
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

/** Orders candidates for a direction: the block with the best row first. */
export function byBestTime(direction: "forward" | "backward") {
  return direction === "backward"
    ? (a: Candidate, b: Candidate) => b.maxTime - a.maxTime
    : (a: Candidate, b: Candidate) => a.minTime - b.minTime;
}

/** The candidates without the blocks that the filters of the segment refuse: no row of those can pass. */
export function withoutRefused(
  { source }: Pick<SourceView, "source">,
  candidates: Candidate[],
  formula: NeedleFormula | undefined,
  stats?: ReadStats,
): Candidate[] {
  // Heads have no filters.
  if (formula === undefined || candidates.length === 0 || source.kind === "head") return candidates;
  const isLabel = (name: string) => isTenantLabel(name) || source.streams.names.includes(name);
  const own = ownFormula(formula, isLabel);
  if (own === undefined) return candidates;
  const wanted = new Uint8Array(source.blockCount);
  for (const { block } of candidates) wanted[block] = 1;
  if (!source.refuse(own, wanted)) return candidates;
  const left = candidates.filter(({ block }) => wanted[block] === 1);
  if (stats !== undefined) {
    stats.filteredBlocks += candidates.length;
    stats.refusedBlocks += candidates.length - left.length;
  }
  return left;
}

/** The part of a formula that is about the segment's own columns: a label of a stream hides metadata of the same name. */
function ownFormula(
  formula: NeedleFormula,
  isLabel: (name: string) => boolean,
): NeedleFormula | undefined {
  switch (formula.kind) {
    case "all":
      return allOf(formula.of.map((part) => ownFormula(part, isLabel)));
    case "any":
      return anyOf(formula.of.map((part) => ownFormula(part, isLabel)));
    case "value":
      return isLabel(formula.name) ? undefined : formula;
    case "text":
      return formula;
  }
}

/** Statistics of a scan before its first block. */
export function startStats(views: readonly SourceView[]): ReadStats {
  const sourcesScanned = views.filter(({ blocks }) => blocks.from === 0 && blocks.to > 0).length;
  return { ...emptyReadStats(), sourcesScanned, batches: 1 };
}

/** Counts a block that was read, with or without its lines. */
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
  /** Valid until the next block is asked for. The caller may overwrite it. */
  readonly runs: Uint32Array;
}

/** The runs of most blocks of a large segment. One shared list saves an allocation per block. */
const firstRun = Uint32Array.of(0);

function isFirstRun(runs: Uint32Array, count: number): boolean {
  return count === 1 && runs[0] === 0;
}

/** Below this share of the streams, the runs of each stream are searched for instead of looking at every run. */
const fewStreams = 1 / 32;

function* selectedRuns(view: SourceView): Generator<SelectedRuns> {
  const { source, selected, blocks } = view;
  const { count } = source.streams;
  if (source.forEachRun !== undefined && selected.length < count * fewStreams) {
    yield* searchedRuns(view, source.forEachRun);
    return;
  }
  // A head also has runs of streams that were not selected.
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

/** Streams ascend over the runs of a segment, and so do the runs of ascending streams. */
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

/** Flags by stream number: 1 for the streams in the list. */
export function flagsOf(streams: Uint32Array, count: number): Uint8Array {
  const flags = new Uint8Array(count);
  for (const stream of streams) flags[stream] = 1;
  return flags;
}
