import type { RowMask, ScanPlan, ScanSource } from "@skald/contracts";
import { isInShard, type StreamLabels } from "@skald/logql";
import {
  emptyReadStats,
  type Labels,
  type ReadStats,
  type RunTable,
  type TimeRange,
} from "@skald/model";
import type { BlockRange, LocalRef } from "@skald/storage";
import { countWithin } from "./dedup/row-mask.js";
import type { ScanMemory } from "./page-memory.js";
import type { Source } from "./source.js";
import { withTenantLabel } from "./tenant-label.js";

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
  /** By stream number, 1 for those of the plan. */
  readonly flags: Uint8Array;
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

export function viewOf(source: Source, scanned: ScanSource<LocalRef>, plan: ScanPlan): SourceView {
  const { part = { from: 0, to: 1 }, mask, sequence, tenantLabel } = scanned;
  const flags = source.select("log" in plan ? plan.log.matchers : plan.matchers);
  if (plan.shard !== undefined) {
    for (let s = 0; s < flags.length; s++) {
      if (flags[s] === 1 && !isInShard(plan.shard, source.text(s))) flags[s] = 0;
    }
  }
  const excludedOf = rowsByBlock(mask);
  const edge = (share: number) => Math.floor(source.blockCount * share);
  return {
    source,
    sequence,
    blocks: { from: edge(part.from), to: edge(part.to) },
    streams: streamLabels(source, tenantLabel),
    streamCount: flags.reduce((sum, flag) => sum + flag, 0),
    flags,
    excludedOf,
    excludedIn: (block, run) => {
      const excluded = excludedOf(block);
      if (excluded === undefined) return 0;
      const { rowStart } = source.runs(block);
      return countWithin(excluded, rowStart[run] as number, rowStart[run + 1] as number);
    },
  };
}

/** The blocks of a view with rows in a range that are not all left out. Those that are count as duplicates. */
export function candidatesOf(view: SourceView, range: TimeRange, stats?: ReadStats): Candidate[] {
  const { source, flags, blocks } = view;
  const from = Number(range.fromNs - source.baseNs);
  const to = Number(range.toNs - source.baseNs);
  const candidates: Candidate[] = [];
  for (let block = blocks.from; block < blocks.to; block++) {
    const table = source.runs(block);
    let runs = selectRuns(table, flags, from, to);
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
  for (const run of runs) {
    minTime = Math.min(minTime, table.minTime[run] as number);
    maxTime = Math.max(maxTime, table.maxTime[run] as number);
    rows += (table.rowStart[run + 1] as number) - (table.rowStart[run] as number);
    lineBytes += table.lineBytes[run] as number;
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

function selectRuns(table: RunTable, flags: Uint8Array, from: number, to: number): Uint32Array {
  const { count, stream, minTime, maxTime } = table;
  const selected = new Uint32Array(count);
  let length = 0;
  for (let r = 0; r < count; r++) {
    if (flags[stream[r] as number] !== 1) continue;
    if ((maxTime[r] as number) < from || (minTime[r] as number) >= to) continue;
    selected[length++] = r;
  }
  return selected.subarray(0, length);
}

function rowsByBlock(mask: RowMask | undefined) {
  const byBlock = new Map<number, Uint32Array>();
  mask?.blocks.forEach((block, i) => {
    byBlock.set(block, mask.rows[i] as Uint32Array);
  });
  return (block: number) => byBlock.get(block);
}

/** The same function for all blocks of the source: scans tell sources apart by it. */
function streamLabels(source: Source, tenant: string | undefined): StreamLabels {
  if (tenant === undefined) return (stream) => source.labels(stream);
  const renamed = new Map<number, Labels>();
  return (stream) => {
    const known = renamed.get(stream);
    if (known !== undefined) return known;
    const labels = withTenantLabel(source.labels(stream), tenant);
    renamed.set(stream, labels);
    return labels;
  };
}
