import { keepsEveryRow, type LogPlan } from "@skald/logql";
import type { RunTable } from "@skald/model";
import { countWithin } from "../source/row-mask.js";
import {
  type Candidate,
  candidatesOf,
  rangeOf,
  type ScanContext,
  type SourceView,
} from "../source/view.js";
import { BlockReader } from "./block-reader.js";

/** Above this the times alone would take too much memory. */
const maxLimit = 100_000;
/** Times of sources further apart than this cannot be compared exactly as numbers: 2^53 ns, less a day. */
const maxShift = 8.9e15;
/** Needed by a scan that looks at times alone. */
export const onlyTimestamps = { timestamps: true, lines: false, metadata: [] };

/** The plan without the rows that are worse than a time (ns since the epoch). */
export function boundPlan(plan: LogPlan, boundNs: bigint | undefined): LogPlan {
  if (boundNs === undefined) return plan;
  if (plan.direction === "backward") {
    return boundNs > plan.fromNs ? { ...plan, fromNs: boundNs } : plan;
  }
  return boundNs + 1n < plan.toNs ? { ...plan, toNs: boundNs + 1n } : plan;
}

/**
 * For a plan whose rows are all in the answer: the same plan up to the time of the last row that its limit leaves,
 * found from headers and timestamps. Blocks are sorted by stream, so without it every block with one good row would go
 * through the pipeline as a whole.
 */
export function narrowToBest(
  plan: LogPlan,
  views: readonly SourceView[],
  context: ScanContext,
): LogPlan {
  if (plan.limit > maxLimit || !keepsEveryRow(plan)) return plan;
  const originNs = views[0]?.source.baseNs;
  if (originNs === undefined) return plan;
  const parts = views
    .map((view) => partOf(view, plan, originNs))
    .filter(({ shift }) => Math.abs(shift) < maxShift);
  const rows = parts.flatMap(({ candidates }) => candidates.map((candidate) => candidate.rows));
  if (rows.reduce((sum, count) => sum + count, 0) <= plan.limit) return plan;
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
  const backward = plan.direction === "backward";
  const candidates = candidatesOf(view, range).sort((a, b) =>
    backward ? b.maxTime - a.maxTime : a.minTime - b.minTime,
  );
  return {
    view,
    candidates,
    sign: backward ? -1 : 1,
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
        const first = table.minTime[run] as number;
        const last = table.maxTime[run] as number;
        if (first < from || last >= to) continue;
        const rows = (table.rowStart[run + 1] as number) - (table.rowStart[run] as number);
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
      const table = view.source.runs(candidate.block);
      const excluded = view.excludedOf(candidate.block);
      for (const run of candidate.runs) addRun(keys, part, { table, run, times, excluded });
    }
  } finally {
    reader.close();
  }
}

interface RunRows {
  readonly table: RunTable;
  readonly run: number;
  readonly times: Float64Array;
  readonly excluded: Uint32Array | undefined;
}

function addRun(keys: BestKeys, part: Part, { table, run, times, excluded }: RunRows): void {
  const { sign, shift, from, to, view } = part;
  const ascends = view.source.kind === "segment";
  const first = table.rowStart[run] as number;
  const end = table.rowStart[run + 1] as number;
  for (let i = first; i < end; i++) {
    const row = sign > 0 ? i : first + end - 1 - i;
    const time = times[row] as number;
    const key = sign * (time + shift);
    if (key > keys.worst) {
      // The rows of a sealed run ascend in time: the others are worse still.
      if (ascends) return;
      continue;
    }
    if (
      time < from ||
      time >= to ||
      (excluded !== undefined && countWithin(excluded, row, row + 1) > 0)
    )
      continue;
    keys.add(key);
  }
}

/** Keeps the smallest `limit` of the numbers that are added, in memory for twice as many. */
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
    this.worst = this.#keys[this.#limit - 1] as number;
  }
}
