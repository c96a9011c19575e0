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
import { countWithin, emptyMask, skipRows, uniteMasks } from "./row-mask.js";
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
  /** Some rows are to be left out. */
  readonly hasMask: boolean;
  /** A flag for each run of a block: 1 where all of its rows are left out. Undefined where there is no such run. */
  skippedOf(block: number): Uint8Array | undefined;
  /** Rows of other runs of a block to leave out, ascending. */
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
  const blocks = blocksOfPart(source, "log" in plan ? undefined : selected, part);
  const byBlock = new Map<number, Uint32Array>();
  const found = skipped && skipRows(source, skipped, selected, blocks);
  const excluded = uniteMasks([mask ?? emptyMask, found?.mask ?? emptyMask]);
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
    hasMask: byBlock.size > 0 || (found?.runs.size ?? 0) > 0,
    skippedOf: (block) => found?.runs.get(block),
    excludedOf: (block) => byBlock.get(block),
    excludedIn: (block, run) => {
      const rows = byBlock.get(block);
      if (rows === undefined) return 0;
      const { rowStart } = source.runs(block);
      return countWithin(rows, rowStart[run]!, rowStart[run + 1]!);
    },
  };
}

/**
 * The blocks of a part of a source. Parts are shares of the blocks that hold selected streams, because these lie next to each other:
 * of shares of all blocks most would hold none, and one would hold them all. That is what a log query wants: without `selected` the
 * shares are those of all blocks, because each part that has rows looks for as many as the limit allows.
 */
function blocksOfPart(
  { blockCount, blocksOf }: Source,
  selected: Uint32Array | undefined,
  part: NonNullable<ScanSource["part"]>,
): BlockRange {
  const isWhole = part.from === 0 && part.to === 1;
  const wanted = isWhole || selected === undefined ? undefined : blocksOf?.(selected);
  if (wanted === undefined) {
    return { from: Math.floor(blockCount * part.from), to: Math.floor(blockCount * part.to) };
  }
  const edge = (share: number) => {
    if (share === 0) return 0;
    return wanted[Math.floor(wanted.length * share)] ?? blockCount;
  };
  return { from: edge(part.from), to: edge(part.to) };
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

export interface CandidateOptions {
  /** Counts blocks, rows that are left out as duplicates, and what filters were asked. */
  readonly stats?: ReadStats | undefined;
  readonly isCounted?: RunCounter | undefined;
  /** What a row must contain. Blocks that the filters of the segment refuse are not in the result: no row of those can pass. */
  readonly formula?: NeedleFormula | undefined;
}

/**
 * Finds the blocks of a view with rows in a range, ascending. Runs that `isCounted` has counted, and runs whose rows are all left out,
 * are not in the result.
 */
export function candidatesOf(
  view: SourceView,
  range: TimeRange,
  { stats, isCounted, formula }: CandidateOptions = {},
): Candidate[] {
  const from = Number(range.fromNs - view.source.baseNs);
  const to = Number(range.toNs - view.source.baseNs);
  const times = { from, to };
  const { source, selected, blocks } = view;
  if (formula === undefined) return candidatesIn(view, times, { stats, isCounted });
  // Only a look at the runs of a block tells whether its mask leaves a row.
  if (view.hasMask || source.blocksOf === undefined) {
    return withoutRefused(view, candidatesIn(view, times, { stats, isCounted }), formula, stats);
  }
  // Most often filters refuse nearly all blocks, so they are asked before anything is made of a block.
  const asked = source.blocksOf(selected, { ...times, blocks });
  if (stats !== undefined) stats.blocks += asked.length;
  const isPassing = askFilters(source, asked, formula, stats);
  const passing = isPassing === undefined ? asked : asked.filter(isPassing);
  return candidatesIn(view, times, { isCounted }, passing);
}

function candidatesIn(
  view: SourceView,
  { from, to }: { readonly from: number; readonly to: number },
  { stats, isCounted }: Pick<CandidateOptions, "stats" | "isCounted">,
  blocks?: Uint32Array,
): Candidate[] {
  const { source } = view;
  const candidates: Candidate[] = [];
  for (const { block, runs: selected } of selectedRuns(view, blocks)) {
    const table = source.runs(block);
    const { minTime, maxTime, rowStart } = table;
    const skipped = view.skippedOf(block);
    let count = 0;
    let inRange = 0;
    for (let i = 0; i < selected.length; i++) {
      const run = selected[i]!;
      if (maxTime[run]! < from || minTime[run]! >= to) continue;
      if (skipped?.[run] === 1) {
        if (stats !== undefined) stats.duplicates += rowStart[run + 1]! - rowStart[run]!;
        continue;
      }
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
        return excluded < rowStart[run + 1]! - rowStart[run]!;
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
  formula: NeedleFormula,
  stats?: ReadStats,
): Candidate[] {
  const blocks = Uint32Array.from(candidates, ({ block }) => block);
  const isPassing = askFilters(source, blocks, formula, stats);
  return isPassing === undefined ? candidates : candidates.filter(({ block }) => isPassing(block));
}

/** Asks the filters of a segment about blocks; undefined when there are none that can answer. */
function askFilters(
  source: Source,
  blocks: Uint32Array,
  formula: NeedleFormula,
  stats: ReadStats | undefined,
): ((block: number) => boolean) | undefined {
  // Heads have no filters.
  if (blocks.length === 0 || source.kind === "head") return undefined;
  const isLabel = (name: string) => isTenantLabel(name) || source.streams.names.includes(name);
  const own = ownFormula(formula, isLabel);
  if (own === undefined) return undefined;
  const wanted = new Uint8Array(source.blockCount);
  for (const block of blocks) wanted[block] = 1;
  if (!source.refuse(own, wanted)) return undefined;
  if (stats !== undefined) {
    stats.filteredBlocks += blocks.length;
    for (const block of blocks) if (wanted[block] === 0) stats.refusedBlocks++;
  }
  return (block) => wanted[block] === 1;
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

/** The runs of the selected streams, in all blocks of a view or in some of them. */
function* selectedRuns(
  { source, selected, blocks }: SourceView,
  some?: Uint32Array,
): Generator<SelectedRuns> {
  const { count } = source.streams;
  // A head also has runs of streams that were not selected.
  const isAll = source.kind === "segment" && selected.length === count;
  const flags = isAll ? undefined : flagsOf(selected, count);
  const wanted = some ?? (isAll ? undefined : source.blocksOf?.(selected, { blocks }));
  const blockCount = wanted?.length ?? blocks.to - blocks.from;
  let runs = new Uint32Array(256);
  for (let i = 0; i < blockCount; i++) {
    const block = wanted === undefined ? blocks.from + i : wanted[i]!;
    const { count: runCount, stream } = source.runs(block);
    if (runs.length < runCount) runs = new Uint32Array(runCount * 2);
    let length = 0;
    for (let r = 0; r < runCount; r++) {
      if (flags === undefined || flags[stream[r]!] === 1) runs[length++] = r;
    }
    yield { block, runs: isFirstRun(runs, length) ? firstRun : runs.subarray(0, length) };
  }
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
