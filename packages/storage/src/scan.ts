import {
  type LeafPlan,
  type LogPartial,
  type LogPlan,
  type MetricPartial,
  type StreamLabels,
  startLogScan,
  startMetricScan,
} from "@skald/logql";
import {
  emptyReadStats,
  type Labels,
  type ReadStats,
  type RunTable,
  type SourceRef,
} from "@skald/model";
import { BlockReader } from "./block-reader.js";
import { type Exclusions, noExclusions } from "./duplicates.js";
import type { BlockRange } from "./segment.js";
import type { Source } from "./source.js";
import { withTenantLabel } from "./tenant-label.js";

/** Work for one thread: one plan over some blocks of one source. Survives a structured clone. */
export interface ScanTask {
  readonly plan: LeafPlan | LogPlan;
  readonly source: SourceRef;
  /** Order of arrival among the sources of the query; decides between rows of equal time. */
  readonly sequence: number;
  /** Blocks to scan; all when absent. */
  readonly blocks?: BlockRange;
  readonly exclusions?: Exclusions;
  /** Adds `__tenant_id__` to every stream, for queries over several tenants. */
  readonly tenantLabel?: string;
  /** Log plans: rows not better than this time (ns since the epoch) are not wanted any more. */
  readonly boundNs?: bigint;
}

export interface ScanOutcome<Partial = MetricPartial | LogPartial> {
  readonly partial: Partial;
  readonly stats: ReadStats;
  readonly streams: number;
}

/** Sequence numbers of rows are those of sources times this, plus the block. */
const maxBlocksPerSource = 2 ** 24;

/** A block with runs of the query in it. */
interface Candidate {
  readonly block: number;
  readonly runs: Uint32Array;
  /** Over the runs, ns since the base, inclusive. */
  readonly minTime: number;
  readonly maxTime: number;
  readonly rows: number;
  readonly lineBytes: number;
}

/** Runs a metric leaf over a source. `check` throws when the query was cancelled; it is called between blocks. */
export function scanMetric(
  source: Source,
  task: ScanTask,
  check: () => void,
): ScanOutcome<MetricPartial> {
  const leaf = task.plan as LeafPlan;
  const scan = startMetricScan(leaf);
  const view = viewOf(source, task, leaf.fromNs + 1n, leaf.toNs);
  const stats = startStats();
  const left: Candidate[] = [];
  for (const candidate of view.candidates) {
    const header = {
      baseNs: source.baseNs,
      metadataNames: source.block(candidate.block).metadataNames(),
    };
    const table = source.runs(candidate.block);
    const excluded = view.excludedOf(candidate.block) !== undefined;
    const uncounted = excluded
      ? candidate.runs
      : candidate.runs.filter((run) => !scan.addRun(view.streams, header, runHeader(table, run)));
    if (uncounted.length > 0) left.push(candidateOf(candidate.block, uncounted, table));
  }
  const reader = new BlockReader(source, scan.needs, left);
  for (const candidate of left) {
    check();
    const block = reader.read(candidate.block);
    scan.addBlock(block, view.streams, view.selectionOf(candidate));
    countRead(stats, source, candidate, scan.needs.lines);
  }
  stats.duplicates = view.excludedRows;
  return { partial: scan.finish(), stats, streams: view.streamCount };
}

/**
 * Runs a log plan over a source: blocks with the best times first, until no block can hold a row better than the
 * worst one kept.
 */
export function scanLog(
  source: Source,
  task: ScanTask,
  check: () => void,
): ScanOutcome<LogPartial> {
  const plan = task.plan as LogPlan;
  const scan = startLogScan(plan);
  const view = viewOf(source, task, plan.fromNs, plan.toNs - 1n);
  const stats = startStats();
  const backward = plan.direction === "backward";
  const ordered = view.candidates.sort((a, b) =>
    backward ? b.maxTime - a.maxTime : a.minTime - b.minTime,
  );
  const reader = new BlockReader(source, scan.needs, ordered);
  for (const candidate of ordered) {
    const best = source.baseNs + BigInt(backward ? candidate.maxTime : candidate.minTime);
    const isWorse = (bound: bigint | undefined) =>
      bound !== undefined && (backward ? best < bound : best > bound);
    if (isWorse(scan.worstTime()) || isWorse(task.boundNs)) break;
    check();
    const block = reader.read(candidate.block);
    const sequence = task.sequence * maxBlocksPerSource + candidate.block;
    scan.addBlock(block, view.streams, view.selectionOf(candidate), sequence);
    countRead(stats, source, candidate, scan.needs.lines);
  }
  stats.duplicates = view.excludedRows;
  return { partial: scan.finish(), stats, streams: view.streamCount };
}

/** What a plan sees of a source: its streams, the blocks with rows in the range, and rows to leave out. */
function viewOf(source: Source, task: ScanTask, fromNs: bigint, toNs: bigint) {
  const from = Number(fromNs - source.baseNs);
  const to = Number(toNs - source.baseNs);
  const matchers = "log" in task.plan ? task.plan.log.matchers : task.plan.matchers;
  const flags = source.select(matchers);
  const candidates: Candidate[] = [];
  const { blocks = { from: 0, to: source.blockCount }, exclusions = noExclusions } = task;
  for (let block = blocks.from; block < blocks.to; block++) {
    const table = source.runs(block);
    const runs = selectRuns(table, flags, from, to);
    if (runs.length > 0) candidates.push(candidateOf(block, runs, table));
  }
  const excludedOf = (block: number): Uint32Array | undefined => {
    const at = exclusions.blocks.indexOf(block);
    return at < 0 ? undefined : exclusions.rows[at];
  };
  return {
    candidates,
    excludedOf,
    excludedRows: candidates.reduce((sum, { block }) => sum + (excludedOf(block)?.length ?? 0), 0),
    streamCount: flags.reduce((sum, flag) => sum + flag, 0),
    streams: streamLabels(source, task.tenantLabel),
    selectionOf: ({ block, runs }: Candidate) => {
      const excluded = excludedOf(block);
      return excluded === undefined ? { runs } : { runs, excluded };
    },
  };
}

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

function selectRuns(table: RunTable, flags: Uint8Array, from: number, to: number): Uint32Array {
  const { count, stream, minTime, maxTime } = table;
  const selected = new Uint32Array(count);
  let length = 0;
  for (let r = 0; r < count; r++) {
    if (flags[stream[r] as number] !== 1) continue;
    if ((maxTime[r] as number) < from || (minTime[r] as number) > to) continue;
    selected[length++] = r;
  }
  return selected.subarray(0, length);
}

function candidateOf(block: number, runs: Uint32Array, table: RunTable): Candidate {
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

function runHeader(table: RunTable, run: number) {
  return {
    stream: table.stream[run] as number,
    rows: (table.rowStart[run + 1] as number) - (table.rowStart[run] as number),
    minTime: table.minTime[run] as number,
    maxTime: table.maxTime[run] as number,
    lineBytes: table.lineBytes[run] as number,
  };
}

function startStats(): ReadStats {
  return { ...emptyReadStats(), sourcesScanned: 1, batches: 1 };
}

function countRead(stats: ReadStats, source: Source, candidate: Candidate, lines: boolean): void {
  const bytes = lines ? candidate.lineBytes : 0;
  if (source.kind === "head") {
    stats.headLines += candidate.rows;
    stats.headBytes += bytes;
    return;
  }
  stats.decompressedLines += candidate.rows;
  stats.decompressedBytes += bytes;
  stats.compressedBytes += source.storedBytes(candidate.block);
}
