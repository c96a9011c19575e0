import type { ScanPlan, ScanSource, VolumePlan } from "@skald/contracts";
import { isInShard, type StreamLabels } from "@skald/logql";
import {
  allOf,
  anyOf,
  emptyLabels,
  emptyReadStats,
  type Labels,
  labelValue,
  makeLabels,
  type NeedleFormula,
  type ReadStats,
  type RunTable,
  type TimeRange,
} from "@skald/model";
import {
  type BlockRange,
  codeOf,
  type LabelTable,
  type LocalRef,
  type StreamColumn,
} from "@skald/storage";
import { countWithin, skipRows, uniteMasks } from "./row-mask.js";
import type { Source } from "./source.js";

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
  const byBlock = new Map<number, Uint32Array>();
  const found = skipped && skipRows(source, skipped, selected, blocks);
  const excluded =
    mask === undefined || found === undefined ? (mask ?? found) : uniteMasks([mask, found]);
  excluded?.blocks.forEach((block, i) => {
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
    let inRange = 0;
    for (let i = 0; i < selected.length; i++) {
      const run = selected[i]!;
      if (maxTime[run]! < from || minTime[run]! >= to) continue;
      inRange++;
      if (isCounted === undefined || !isCounted(block, run, table)) selected[count++] = run;
    }
    if (stats !== undefined && inRange > 0) {
      stats.blocks++;
      if (count === 0) stats.countedBlocks++;
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
  const sourcesScanned = views.filter(
    ({ blocks, streamCount }) => blocks.from === 0 && blocks.to > 0 && streamCount > 0,
  ).length;
  return { ...emptyReadStats(), sourcesScanned, batches: 1 };
}

/** Counts the lines of blocks that have to be read. */
export function countWanted(stats: ReadStats, candidates: readonly Candidate[], lines: boolean) {
  if (!lines) return;
  for (const { lineBytes } of candidates) stats.wantedBytes += lineBytes;
}

/** Counts a block that was read, with or without its lines. */
export function countRead(stats: ReadStats, view: SourceView, read: Candidate, lines: boolean) {
  const { source } = view;
  const bytes = lines ? read.lineBytes : 0;
  stats.readBlocks++;
  if (source.kind === "head") {
    stats.headLines += read.rows;
    stats.headBytes += bytes;
    return;
  }
  stats.decompressedLines += read.rows;
  stats.decompressedBytes += bytes;
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

/**
 * The label sets of a table's streams, each made once, with `__tenant_id__` when a tenant is given. Scans tell sources apart by this
 * function, so that a source has one for all of its blocks.
 */
export function streamLabels(streams: LabelTable, tenant: string | undefined): StreamLabels {
  const labels = onceEach((stream: number) => streams.labels(stream));
  const only = (names: readonly string[]) => projectedLabels(streams, names);
  if (tenant === undefined) return Object.assign(labels, { only });
  const renamed = onceEach((own: Labels) => withTenantLabel(own, tenant));
  return Object.assign((stream: number) => renamed(labels(stream)), {
    only: (names: readonly string[]) => {
      const own = only([...names, tenantLabelName]);
      const kept = new Set(names);
      const reduced = onceEach((all: Labels) => keepNames(withTenantLabel(all, tenant), kept));
      return (stream: number) => reduced(own(stream));
    },
  });
}

/** The function, called once for each key. */
function onceEach<Key>(make: (key: Key) => Labels): (key: Key) => Labels {
  const known = new Map<Key, Labels>();
  return (key) => {
    let made = known.get(key);
    if (made === undefined) {
      made = make(key);
      known.set(key, made);
    }
    return made;
  };
}

function keepNames({ names, values }: Labels, kept: ReadonlySet<string>): Labels {
  const left = names.flatMap((name, i) => (kept.has(name) ? [i] : []));
  return { names: left.map((i) => names[i]!), values: left.map((i) => values[i]!) };
}

/** Labels of some names only, by stream. Streams with the same values share one object. */
function projectedLabels(table: LabelTable, names: readonly string[]): (stream: number) => Labels {
  const columns = [...new Set(names)].sort().flatMap((name) => table.column(name) ?? []);
  const [only] = columns;
  if (only === undefined) return () => emptyLabels;
  const known = new Map<number | string, Labels>();
  const keyOf = columns.length === 1 ? (stream: number) => codeOf(only, stream) : keysOf(columns);
  return (stream) => {
    const key = keyOf(stream);
    let labels = known.get(key);
    if (labels === undefined) {
      labels = labelsIn(columns, stream);
      known.set(key, labels);
    }
    return labels;
  };
}

/** The codes of a stream as one number, or as a text where they do not fit into one. */
function keysOf(columns: readonly StreamColumn[]): (stream: number) => number | string {
  const combinations = columns.reduce((product, { valueCount }) => product * (valueCount + 1), 1);
  if (combinations > Number.MAX_SAFE_INTEGER) {
    return (stream) => columns.map((column) => codeOf(column, stream)).join();
  }
  return (stream) => {
    let key = 0;
    for (const column of columns) key = key * (column.valueCount + 1) + codeOf(column, stream);
    return key;
  };
}

function labelsIn(columns: readonly StreamColumn[], stream: number): Labels {
  const has = columns.filter((column) => codeOf(column, stream) > 0);
  return {
    names: has.map(({ name }) => name),
    values: has.map((column) => column.value(codeOf(column, stream) - 1)),
  };
}

export const tenantLabelName = "__tenant_id__";
/** What rows of several tenants have in place of a `__tenant_id__` of their stream. */
export const shadowedName = `original_${tenantLabelName}`;

/** True for the labels that `withTenantLabel` may add. */
function isTenantLabel(name: string): boolean {
  return name === tenantLabelName || name === shadowedName;
}

/** Adds `__tenant_id__`. A label of that name that the stream already has is kept as `original___tenant_id__`. */
export function withTenantLabel(labels: Labels, tenant: string): Labels {
  const pairs = labels.names.map((name, i) => [name, labels.values[i] as string] as const);
  const own = labelValue(labels, tenantLabelName);
  const shadowed = own === "" ? [] : [[shadowedName, own] as const];
  return makeLabels([...pairs, ...shadowed, [tenantLabelName, tenant] as const]);
}
