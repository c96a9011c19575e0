import type { ScanOutcome, ScanTask } from "@skald/contracts";
import {
  type ColumnNeeds,
  keepsEveryRow,
  type LogPlan,
  type LogScan,
  type LogSelected,
  startLogScan,
} from "@skald/logql";
import type { Block, ReadStats } from "@skald/model";
import type { LocalRef } from "@skald/storage";
import { BlockReader, factsOf, onlyTimestamps, type ScanContext } from "../source/block-reader.js";
import { type FoundBlocks, foundBlocks } from "../source/cache.js";
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
  for (const [i, view] of views.entries()) {
    const findings = foundBlocks(plan, task.sources[i]!);
    scanView(view, { scan, plan, stats, context, findings });
    findings?.give(context);
  }
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
  /** What is known of the source that is read, and what is found in it. */
  readonly findings: FoundBlocks | undefined;
}

function scanView(view: SourceView, run: LogRun): void {
  const { scan, plan, stats, context, findings } = run;
  const { source, sequence } = view;
  const candidates = candidatesOf(view, rangeOf(plan), { stats, formula: scan.formula });
  const left = candidates.filter((one) => !findings?.refuses(one, source.runs(one.block)));
  const ordered = left.sort(byBestTime(plan.direction));
  const isSmall = ordered.length <= maxKeptBlocks && source.kind === "segment";
  const kept = isSmall && keepsEveryRow(plan) ? context.kept : undefined;
  const isUnread = ({ block }: Candidate) => !kept?.has(source, block);
  const reader = new BlockReader(source, scan.needs, [], kept ? undefined : context.memory);
  try {
    for (const stretch of narrowed(view, ordered, run)) {
      for (const { lineBytes } of stretch) stats.wantedBytes += lineBytes;
      reader.want(stretch.filter(isUnread));
      for (const candidate of stretch) {
        if (isTooLate(view, candidate, run)) return;
        context.check();
        const rank = sequence * maxBlocksPerSource + candidate.block;
        const known = findings?.blocks.get(candidate.block);
        const selection = {
          ...selectionOf(view, candidate),
          only: known?.left ?? candidate.only,
          into: findings && { findings: findings.writer, number: candidate.block, known },
        };
        const add = (block: Block) => scan.addBlock(block, view.streams, selection, rank);
        if (kept === undefined) add(reader.read(candidate.block));
        else kept.read(source, candidate.block, reader, add);
        countRead(stats, view, candidate, true);
      }
    }
  } finally {
    stats.compressedBytes += reader.readBytes;
    reader.close();
  }
}

/** Whether neither the block nor one behind it can hold a row better than the worst row kept. */
function isTooLate({ source }: SourceView, block: Candidate, { scan, plan }: LogRun): boolean {
  const worst = scan.worstTime();
  if (worst === undefined) return false;
  return plan.direction === "backward"
    ? source.baseNs + BigInt(block.maxTime) < worst
    : source.baseNs + BigInt(block.minTime) > worst;
}

/** A block, with the rows of it that columns leave where they were asked. */
interface Narrowed extends Candidate {
  readonly only?: LogSelected["only"];
}

/**
 * The candidates without those that columns of fields rule out, in stretches: columns are read for one stretch, then the lines of what is
 * left of it. A stretch is twice as long as the one before, because the scan may end early, and because each costs a request where
 * pages are not on this machine. Where most rows pass, columns are not asked any more; where findings know a block, they never are.
 */
function* narrowed(
  view: SourceView,
  ordered: readonly Candidate[],
  run: LogRun,
): Generator<readonly Narrowed[]> {
  const { source } = view;
  const needsOf = ({ block }: Candidate) =>
    run.findings?.blocks.has(block) ? undefined : run.scan.narrowNeeds(factsOf(source, block));
  const needs = ordered.map(needsOf).find((one) => one !== undefined);
  let from = 0;
  if (needs !== undefined) {
    const narrowing = new Narrowing(view, run, needs);
    try {
      for (let size = 1; from < ordered.length && narrowing.pays; from += size, size *= 2)
        yield narrowing.narrow(ordered.slice(from, from + size), needsOf);
    } finally {
      run.stats.compressedBytes += narrowing.reader.readBytes;
      narrowing.reader.close();
    }
  }
  if (from < ordered.length) yield ordered.slice(from);
}

/** Rules out rows and blocks of one source by columns of fields. */
class Narrowing {
  readonly reader: BlockReader;
  readonly #view: SourceView;
  readonly #run: LogRun;
  #asked = 0;
  #left = 0;

  constructor(view: SourceView, run: LogRun, needs: ColumnNeeds) {
    this.#view = view;
    this.#run = run;
    this.reader = new BlockReader(view.source, needs, [], run.context.memory);
  }

  /** Whether columns have ruled out at least half of the rows that they were asked for. */
  get pays(): boolean {
    return this.#left * 2 <= this.#asked;
  }

  narrow(
    stretch: readonly Candidate[],
    isKnown: (candidate: Candidate) => unknown,
  ): readonly Narrowed[] {
    const known = new Set(stretch.filter(isKnown));
    this.reader.want([...known]);
    return stretch.flatMap((one) => (known.has(one) ? this.#rowsOf(one) : one));
  }

  #rowsOf(candidate: Candidate): Narrowed[] {
    const { scan, stats, context } = this.#run;
    if (isTooLate(this.#view, candidate, this.#run)) return [candidate];
    context.check();
    const block = this.reader.read(candidate.block);
    const only = scan.narrow(block, this.#view.streams, selectionOf(this.#view, candidate));
    const left = only === undefined ? candidate.rows : countBits(only);
    this.#asked += candidate.rows;
    this.#left += left;
    if (left > 0) return [{ ...candidate, only }];
    countRead(stats, this.#view, candidate, false);
    return [];
  }
}

function countBits(words: Uint32Array): number {
  let count = 0;
  for (const word of words) for (let left = word; left !== 0; left &= left - 1) count++;
  return count;
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
