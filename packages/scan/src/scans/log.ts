import type { ScanOutcome, ScanTask } from "@skald/contracts";
import { keepsEveryRow, type LogPlan, type LogScan, startLogScan } from "@skald/logql";
import type { Block, ReadStats } from "@skald/model";
import type { LocalRef } from "@skald/storage";
import { BlockReader, onlyTimestamps, type ScanContext } from "../source/block-reader.js";
import { countWithin } from "../source/row-mask.js";
import type { OpenSource } from "../source/source.js";
import {
  byBestTime,
  type Candidate,
  candidatesOf,
  countRead,
  rangeOf,
  type SourceView,
  selectionOf,
  startStats,
  viewOf,
} from "../source/view.js";

/** The sequence number of a row is its source's number times this, plus its block. */
const maxBlocksPerSource = 2 ** 24;

/**
 * Runs a log plan over sources. In each source it reads the blocks with the best times first, until no block can hold
 * a row better than the worst row kept.
 */
export function scanLog(
  task: ScanTask<LogPlan, LocalRef>,
  open: OpenSource,
  context: ScanContext,
): ScanOutcome<LogPlan> {
  const views = task.sources.map((scanned) => viewOf(open(scanned.ref), scanned, task.plan));
  const plan = narrowToBest(boundPlan(task.plan, task.boundNs), views, context);
  const scan = startLogScan(plan, context.check);
  const stats = startStats(views);
  for (const view of views) scanView(view, { scan, plan, stats, context });
  const partial = scan.finish();
  stats.postFilterLines = scan.passedRows;
  stats.linesSent = partial.rowCount;
  const streams = Math.max(0, ...views.map(({ streamCount }) => streamCount));
  return { partial, stats, streams };
}

/** A scan of more blocks of a segment does not keep them. */
const maxKeptBlocks = 16;

interface LogRun {
  readonly scan: LogScan;
  readonly plan: LogPlan;
  readonly stats: ReadStats;
  readonly context: ScanContext;
}

function scanView(view: SourceView, { scan, plan, stats, context }: LogRun): void {
  const { source, sequence } = view;
  const backward = plan.direction === "backward";
  const candidates = candidatesOf(view, rangeOf(plan), { stats, formula: scan.formula });
  const ordered = candidates.sort(byBestTime(plan.direction));
  if (scan.needs.lines) for (const { lineBytes } of ordered) stats.wantedBytes += lineBytes;
  const isSmall = ordered.length <= maxKeptBlocks && source.kind === "segment";
  const kept = isSmall && keepsEveryRow(plan) ? context.kept : undefined;
  const unread = kept ? ordered.filter(({ block }) => !kept.has(source, block)) : ordered;
  const reader = new BlockReader(source, scan.needs, unread, kept ? undefined : context.memory);
  try {
    for (const candidate of ordered) {
      const best = source.baseNs + BigInt(backward ? candidate.maxTime : candidate.minTime);
      const worst = scan.worstTime();
      if (worst !== undefined && (backward ? best < worst : best > worst)) break;
      context.check();
      const rank = sequence * maxBlocksPerSource + candidate.block;
      const add = (block: Block) =>
        scan.addBlock(block, view.streams, selectionOf(view, candidate), rank);
      if (kept === undefined) add(reader.read(candidate.block));
      else kept.read(source, candidate.block, reader, add);
      countRead(stats, view, candidate, scan.needs.lines);
    }
  } finally {
    stats.compressedBytes += reader.readBytes;
    reader.close();
  }
}

/** Above this the times alone would take too much memory. */
const maxLimit = 100_000;
/** Times of sources further apart than this cannot be compared exactly as numbers: 2^53 ns, less a day. */
const maxShift = 8.9e15;

/** The plan without the rows that are worse than a time (ns since the epoch). */
function boundPlan(plan: LogPlan, boundNs: bigint | undefined): LogPlan {
  if (boundNs === undefined) return plan;
  if (plan.direction === "backward") {
    return boundNs > plan.fromNs ? { ...plan, fromNs: boundNs } : plan;
  }
  return boundNs + 1n < plan.toNs ? { ...plan, toNs: boundNs + 1n } : plan;
}

/**
 * Narrows a plan that keeps every row to the time of the last row within its limit, found from headers and timestamps.
 * Blocks are sorted by stream, so without this every block with one good row would go through the pipeline as a whole.
 */
function narrowToBest(plan: LogPlan, views: readonly SourceView[], context: ScanContext): LogPlan {
  if (plan.limit > maxLimit || !keepsEveryRow(plan)) return plan;
  const originNs = views[0]?.source.baseNs;
  if (originNs === undefined) return plan;
  const parts = views
    .map((view) => partOf(view, plan, originNs))
    .filter(({ shift }) => Math.abs(shift) < maxShift);
  const all = parts.flatMap(({ candidates }) => candidates);
  if (all.reduce((sum, { rows }) => sum + rows, 0) <= plan.limit) return plan;
  const keys = new BestKeys(plan.limit);
  keys.worst = headerBound(parts, plan);
  for (const part of parts) addRows(keys, part, context);
  const worst = keys.finish();
  if (worst === undefined) return plan;
  const sign = plan.direction === "backward" ? -1 : 1;
  return boundPlan(plan, originNs + BigInt(sign * worst));
}

/** The candidates of a source, best first. A key is a time from the origin, negated when later times are better. */
interface Part {
  readonly view: SourceView;
  readonly candidates: readonly Candidate[];
  readonly sign: 1 | -1;
  /** ns from the origin to the base of the source. */
  readonly shift: number;
  /** Of the plan, ns since the base. */
  readonly from: number;
  readonly to: number;
}

function partOf(view: SourceView, plan: LogPlan, originNs: bigint): Part {
  const { baseNs } = view.source;
  const range = rangeOf(plan);
  return {
    view,
    candidates: candidatesOf(view, range).sort(byBestTime(plan.direction)),
    sign: plan.direction === "backward" ? -1 : 1,
    shift: Number(baseNs - originNs),
    from: Number(range.fromNs - baseNs),
    to: Number(range.toNs - baseNs),
  };
}

/** A key that enough rows do not exceed, as far as the headers show; infinite when they do not. */
function headerBound(parts: readonly Part[], { limit }: LogPlan): number {
  const ends: { key: number; rows: number }[] = [];
  for (const { view, candidates, sign, shift, from, to } of parts) {
    for (const { block, runs } of candidates) {
      const table = view.source.runs(block);
      for (const run of runs) {
        if (view.excludedIn(block, run) > 0) continue;
        const [first, last] = [table.minTime[run]!, table.maxTime[run]!];
        if (first < from || last >= to) continue;
        const rows = table.rowStart[run + 1]! - table.rowStart[run]!;
        ends.push({ key: sign * ((sign > 0 ? last : first) + shift), rows });
      }
    }
  }
  ends.sort((a, b) => a.key - b.key);
  let rows = 0;
  for (const end of ends) {
    rows += end.rows;
    if (rows >= limit) return end.key;
  }
  return Number.POSITIVE_INFINITY;
}

function addRows(keys: BestKeys, part: Part, context: ScanContext): void {
  const { view, candidates, sign, shift } = part;
  const reader = new BlockReader(view.source, onlyTimestamps, candidates, context.memory);
  try {
    for (const candidate of candidates) {
      const best = sign > 0 ? candidate.minTime : candidate.maxTime;
      if (sign * (best + shift) > keys.worst) break;
      context.check();
      const times = reader.read(candidate.block).timestamps();
      const { rowStart } = view.source.runs(candidate.block);
      const excluded = view.excludedOf(candidate.block);
      for (const run of candidate.runs) {
        addRun(keys, part, { first: rowStart[run]!, end: rowStart[run + 1]!, times, excluded });
      }
    }
  } finally {
    reader.close();
  }
}

interface RunRows {
  readonly first: number;
  readonly end: number;
  readonly times: Float64Array;
  readonly excluded: Uint32Array | undefined;
}

function addRun(keys: BestKeys, part: Part, { first, end, times, excluded }: RunRows): void {
  const { sign, shift, from, to, view } = part;
  // The rows of a sealed run ascend in time.
  const ascends = view.source.kind === "segment";
  for (let i = first; i < end; i++) {
    const row = sign > 0 ? i : first + end - 1 - i;
    const time = times[row]!;
    const key = sign * (time + shift);
    if (key > keys.worst && ascends) return;
    if (key > keys.worst || time < from || time >= to) continue;
    if (excluded === undefined || countWithin(excluded, row, row + 1) === 0) keys.add(key);
  }
}

/** Keeps the smallest `limit` of the numbers added to it, in memory for twice as many. */
export class BestKeys {
  /** Numbers above this are not among the smallest; it falls as numbers are added. */
  worst = Number.POSITIVE_INFINITY;
  readonly #limit: number;
  readonly #keys: Float64Array;
  #count = 0;

  constructor(limit: number) {
    this.#limit = limit;
    this.#keys = new Float64Array(limit * 2);
  }

  add(key: number): void {
    if (key > this.worst) return;
    this.#keys[this.#count++] = key;
    if (this.#count === this.#keys.length) this.#prune();
  }

  /** The largest of the smallest `limit`; undefined when fewer were added. */
  finish(): number | undefined {
    if (this.#count < this.#limit) return undefined;
    this.#prune();
    return this.worst;
  }

  #prune(): void {
    this.#keys.subarray(0, this.#count).sort();
    this.#count = this.#limit;
    this.worst = this.#keys[this.#limit - 1]!;
  }
}
