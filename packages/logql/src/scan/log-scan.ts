import type { RowSelection } from "@skald/kernels";
import { type Block, dayNs, type NeedleFormula, type TimeRange } from "@skald/model";
import { compilePipeline } from "../pipeline/compile.js";
import type {
  Pipeline,
  PipelineRun,
  RowBatch,
  RunOptions,
  SeriesTable,
} from "../pipeline/pipeline.js";
import { defaultMaxLineBytes } from "../pipeline/row/row.js";
import { keepRows } from "../pipeline/stage/row-sets.js";
import { tooMuchMemory } from "../plan/budget.js";
import type { LogPlan, RowLabels } from "../plan/plan.js";
import { factsOf, type Grouping, type LogExpr } from "../syntax/ast.js";
import {
  type BlockStreams,
  type ColumnNeeds,
  forEachStretch,
  type RunSelection,
  StreamKeys,
  type StreamLabels,
} from "./block-selection.js";
import { FieldFilter } from "./field-columns.js";
import { bitsOf, type FindingsWriter, type FoundBlock } from "./findings.js";
import { type LogPartial, type RowPlace, RowStore, siftRows } from "./log-rows.js";

/**
 * Keeps the best rows of a log query: the first `limit` in its direction, or with an interval the rows from which it may
 * take `limit`. Blocks may come in any order, but a reader that gives the best first can stop early.
 */
export interface LogScan {
  readonly needs: ColumnNeeds;
  /** What a block must hold to have a row of the answer; absent: nothing is known. */
  readonly formula: NeedleFormula | undefined;
  /**
   * The time (ns since the epoch) of the worst row kept once there are enough rows: a block all of whose rows are
   * worse cannot change the answer. undefined while every row may still count.
   */
  worstTime(): bigint | undefined;
  /**
   * Adds the selected rows that lie in the time range of the plan. Of rows of a stream with equal timestamps the ones
   * with a smaller `sequence` come first (a number below 2^53 of source and block), then the ones with a smaller row number.
   */
  addBlock(block: Block, streams: StreamLabels, selection: LogSelected, sequence: number): void;
  /**
   * What `narrow` reads of a block, which is no line; undefined where it can tell nothing. Worth it only before the lines are read.
   */
  narrowNeeds(block: BlockStreams): ColumnNeeds | undefined;
  /** Which of the selected rows may be in the answer, as words of bits (see `RowSet`); undefined when that may be any of them. */
  narrow(block: Block, streams: StreamLabels, selection: RunSelection): Uint32Array | undefined;
  /** Rows that every stage let pass so far, those beyond the limit too. */
  readonly passedRows: number;
  /** What was kept; the scan cannot be used afterwards. */
  finish(): LogPartial;
}

export interface FoundInto {
  readonly findings: FindingsWriter;
  readonly number: number;
  readonly known: FoundBlock | undefined;
}

/** Rows of runs, of which some are known not to be in the answer. */
export interface LogSelected extends RunSelection {
  /** What `narrow`, or what was found before, left of them. */
  readonly only?: Uint32Array | undefined;
  /** Where it goes which of them pass, with what was known of the block. */
  readonly into?: FoundInto | undefined;
}

/**
 * Starts a scan of a log query: compiles its pipeline. `check` is called often, also in the middle of a block, and throws
 * when the query should stop. Throws invalid_argument when a stage cannot be built.
 */
export function startLogScan(plan: LogPlan, check?: () => void): LogScan {
  return new LogQueryScan(plan, check);
}

/** True when every row that a log plan reads is in its answer, so that it reads no further than to its limit. */
export function keepsEveryRow({ log, intervalNs }: LogPlan): boolean {
  if (intervalNs > 0n) return false;
  return !log.stages.some((stage) => factsOf(stage).filters);
}

/** Label sets that a run of the pipeline may remember before it is replaced by a fresh one. */
const maxRememberedSeries = 20_000;

/** The scan of a log query. */
class LogQueryScan implements LogScan {
  readonly needs: ColumnNeeds;
  readonly formula: NeedleFormula | undefined;
  passedRows = 0;
  readonly #pipeline: Pipeline;
  readonly #fields: FieldFilter | undefined;
  readonly #best: BestRows;
  readonly #selection: LogSelection;
  readonly #runOptions: RunOptions;
  readonly #streamKeys = new StreamKeys();
  #run: PipelineRun;

  constructor(plan: LogPlan, check: (() => void) | undefined) {
    const { stages } = plan.log;
    this.#pipeline = compilePipeline({ stages, output: { kind: "log" }, nowNs: plan.nowNs });
    this.#fields = FieldFilter.of(stages, check);
    this.#runOptions = { check, maxLineBytes: plan.maxLineBytes };
    this.#run = this.#pipeline.start(this.#runOptions);
    this.#best = new BestRows(plan);
    this.#selection = new LogSelection(plan, keepsEveryRow(plan) ? plan.limit : undefined);
    this.formula = this.#pipeline.formula;
    this.needs = { lines: true, timestamps: true, metadata: this.#pipeline.needs.metadata };
  }

  worstTime(): bigint | undefined {
    const { worst } = this.#best;
    return worst === undefined ? undefined : timestampOf(worst);
  }

  narrowNeeds(block: BlockStreams): ColumnNeeds | undefined {
    const fields = this.#fields?.columnsFor(block);
    return fields && { timestamps: true, lines: false, metadata: [], fields };
  }

  narrow(block: Block, streams: StreamLabels, selection: RunSelection): Uint32Array | undefined {
    const wanted = this.#selection.select(block, selection, this.worstTime());
    return this.#fields?.passing(block, streams, wanted);
  }

  addBlock(block: Block, streams: StreamLabels, selection: LogSelected, sequence: number): void {
    const wanted = this.#selection.select(block, selection, this.worstTime());
    const { only, into } = selection;
    this.#best.countRead(block, selection);
    const seen = into && bitsOf(wanted, block.rowCount);
    if (only !== undefined) keepRows(only, wanted, false);
    if (wanted.count === 0) return;
    if (this.#run.series.count > maxRememberedSeries) {
      this.#best.makeLabels();
      this.#run = this.#pipeline.start(this.#runOptions);
    }
    const batch = this.#run.process(block, streams, wanted);
    this.passedRows += batch.count;
    if (seen !== undefined) into?.findings.addRows(into.number, seen, batch, into.known);
    this.#streamKeys.start(block, streams);
    this.#addRows(block, batch, sequence);
    if (this.#best.isFull) this.#best.prune();
  }

  finish(): LogPartial {
    const { rows, labels } = this.#best.finish();
    return {
      rowCount: rows.count,
      places: rows.places(),
      labelSet: rows.labelSets(),
      lines: rows.lines(),
      labels,
      truncated: this.#best.worst !== undefined,
    };
  }

  #addRows(block: Block, batch: RowBatch, sequence: number): void {
    const day = Number(block.baseNs / dayNs);
    const times = block.timestamps();
    const lines = batch.lines ?? block.lines();
    const labelSetOf = new Map<number, number>();
    for (let i = 0; i < batch.count; i++) {
      const row = batch.rows[i]!;
      const line = batch.lines === undefined ? row : i;
      const place = {
        day,
        time: times[row]!,
        stream: this.#streamKeys.ofRow(row),
        sequence,
        row,
        labelSet: this.#labelSet(batch.series[i]!, labelSetOf),
      };
      this.#best.push(place, lines.bytes.subarray(lines.offsets[line]!, lines.offsets[line + 1]!));
    }
  }

  #labelSet(series: number, known: Map<number, number>): number {
    const found = known.get(series);
    if (found !== undefined) return found;
    const labelSet = this.#best.addLabels({ table: this.#run.series, series });
    known.set(series, labelSet);
    return labelSet;
  }
}

/** The rows of a scan take at most this part of what a query may hold: what it finds is held again where it is merged. */
const partOfScan = 1 / 2;
/** A scan does not end before it has this part of the lines that it read: those of other streams that it drops are read again. */
const partOfRead = 1 / 4;
/** A prune copies what it leaves: behind its end a scan takes rows of other streams until it holds this many times as much. */
const growthPerPrune = 1.5;
/** Memory of a row besides its line. */
const rowBytes = 64;

/** A label set where the pipeline noted it: most rows are dropped again, and theirs are never made. */
interface NotedLabels {
  readonly table: SeriesTable;
  readonly series: number;
}

/** Keeps the best rows of those that are added, and the label sets they use. */
class BestRows {
  #store = new RowStore();
  #labels: (NotedLabels | RowLabels)[] = [];
  #worst: RowPlace | undefined;
  /** Rows that the last prune left, and their lines: there is nothing to do until more come. */
  #pruned = 0;
  #prunedBytes = 0;
  /** Bytes of lines of the runs that were read. */
  #readBytes = 0;
  readonly #plan: LogPlan;
  readonly #limit: number;
  readonly #maxLineBytes: number;

  constructor(plan: LogPlan) {
    this.#plan = plan;
    this.#limit = plan.limit;
    this.#maxLineBytes = plan.maxLineBytes ?? defaultMaxLineBytes;
  }

  /** The worst row that still counts, once there are enough; label sets are renumbered whenever it changes. */
  get worst(): RowPlace | undefined {
    return this.#worst;
  }

  countRead({ runs: { lineBytes } }: Block, { runs }: RunSelection): void {
    for (const run of runs) this.#readBytes += lineBytes[run]!;
  }

  /** Number of a label set for `push`, valid until the next `prune`. */
  addLabels(labels: NotedLabels): number {
    return this.#labels.push(labels) - 1;
  }

  push(place: RowPlace, line: Uint8Array): void {
    const held = this.#store.bytes.length + line.length + (this.#store.count + 1) * rowBytes;
    if (held > this.#maxLineBytes * partOfScan) throw tooMuchMemory(this.#maxLineBytes);
    this.#store.push(place, line);
  }

  /** True when rows should be dropped: call `prune` between two blocks. */
  get isFull(): boolean {
    const { count, bytes } = this.#store;
    if (this.#worst === undefined && count >= this.#limit) return true;
    if (bytes.length > Math.max(this.#endBytes, this.#prunedBytes * growthPerPrune)) return true;
    const slack = Math.max(256, this.#limit >>> 2);
    const isLarge = bytes.length > (this.#maxLineBytes * partOfScan) / 4;
    return count > this.#limit + slack || (count > this.#limit && isLarge);
  }

  prune(): void {
    if (this.#store.count === this.#pruned) return;
    const { rows, isCut } = this.#best();
    this.#keep(rows);
    this.#pruned = rows.length;
    this.#prunedBytes = this.#store.bytes.length;
    if (isCut && rows.length > 0) this.#worst = this.#store.place(rows.length - 1);
  }

  /** Makes the label sets of the rows kept, so that no table is needed any more. */
  makeLabels(): RowLabels[] {
    this.prune();
    const made = this.#labels.map((labels) => ("table" in labels ? makeNoted(labels) : labels));
    this.#labels = made;
    return made;
  }

  /** The rows kept, best first, and their label sets. */
  finish(): { readonly rows: RowStore; readonly labels: readonly RowLabels[] } {
    const labels = this.makeLabels();
    return { rows: this.#store, labels };
  }

  /** Where the scan ends: behind these bytes of lines. */
  get #endBytes(): number {
    const { scanBytes = Number.POSITIVE_INFINITY } = this.#plan;
    return Math.max(scanBytes, this.#readBytes * partOfRead);
  }

  #best(): { readonly rows: Uint32Array; readonly isCut: boolean } {
    const order = this.#store.order(this.#plan.direction);
    const { rows, isCut } =
      this.#plan.intervalNs > 0n
        ? siftRows(this.#plan, order, (row) => this.#store.timestampNs(row))
        : { rows: order.subarray(0, this.#limit), isCut: order.length >= this.#limit };
    const count = this.#countWithin(rows);
    return { rows: rows.subarray(0, count), isCut: isCut || count < rows.length };
  }

  /** How many of the rows come before the end of the scan; all that are as old as the last of them do. */
  #countWithin(rows: Uint32Array): number {
    const store = this.#store;
    let left = this.#endBytes;
    if (store.bytes.length <= left) return rows.length;
    let count = 0;
    while (count < rows.length && left > 0) left -= store.lineBytes(rows[count++]!);
    const isTied = (a: number, b: number) =>
      store.time[a] === store.time[b] && store.day[a] === store.day[b];
    while (count > 0 && count < rows.length && isTied(rows[count - 1]!, rows[count]!)) count++;
    return count;
  }

  #keep(order: Uint32Array): void {
    const labels: (NotedLabels | RowLabels)[] = [];
    const renumbered = new Map<number, number>();
    this.#store = this.#store.moved(order, (noted) => {
      let labelSet = renumbered.get(noted);
      if (labelSet === undefined) {
        labelSet = labels.push(this.#labels[noted]!) - 1;
        renumbered.set(noted, labelSet);
      }
      return labelSet;
    });
    this.#labels = labels;
  }
}

function makeNoted({ table, series }: NotedLabels): RowLabels {
  const { labels, categories } = table.get(series);
  if (categories === undefined) throw new Error("log output without label categories");
  return { labels, categories };
}

/** ns since the epoch of a place. */
function timestampOf(place: RowPlace): bigint {
  return BigInt(place.day) * dayNs + BigInt(place.time);
}

export interface RowMatchOptions extends TimeRange {
  readonly log: LogExpr;
  /** `now` of templates, ns since the epoch. */
  readonly nowNs: bigint;
  /** Called often; throws when the work should stop. */
  readonly check: () => void;
}

const noLabels: Grouping = { without: false, labels: [] };

/** Finds which rows a log query keeps, and nothing else of them. Throws invalid_argument when a stage cannot be built. */
export class RowMatch {
  readonly needs: ColumnNeeds;
  /** What a block must hold to have such a row; absent: nothing is known. */
  readonly formula: NeedleFormula | undefined;
  readonly #pipeline: Pipeline | undefined;
  readonly #run: PipelineRun | undefined;
  readonly #selection: LogSelection;

  constructor({ log, nowNs, fromNs, toNs, check }: RowMatchOptions) {
    const { stages } = log;
    // Without labels in its output every row is of one series.
    const output = { kind: "metric", grouping: noLabels } as const;
    if (stages.length > 0) this.#pipeline = compilePipeline({ stages, output, nowNs });
    this.#run = this.#pipeline?.start({ check });
    this.#selection = new LogSelection({ fromNs, toNs, direction: "forward" }, undefined);
    this.formula = this.#pipeline?.formula;
    const { lines = false, metadata = [] } = this.#pipeline?.needs ?? {};
    this.needs = { lines, metadata, timestamps: true };
  }

  /** The rows of a block, ascending. */
  rowsOf(block: Block, streams: StreamLabels, selection: RunSelection): Uint32Array {
    const wanted = this.#selection.select(block, selection, undefined);
    if (this.#run === undefined) return wanted.rows.slice(0, wanted.count);
    if (wanted.count === 0) return new Uint32Array(0);
    const { rows, count } = this.#run.process(block, streams, wanted);
    return rows.slice(0, count);
  }
}

type SelectedPlan = Pick<LogPlan, "fromNs" | "toNs" | "direction">;

/** Chooses the rows of a block that a log query has to look at. */
class LogSelection {
  readonly #plan: SelectedPlan;
  /** Given when every row survives the pipeline: more rows than this are never needed of a block. */
  readonly #limit: number | undefined;
  #rows = new Uint32Array(0);

  constructor(plan: SelectedPlan, limit: number | undefined) {
    this.#plan = plan;
    this.#limit = limit;
  }

  /** `worst`: rows worse than this time (ns since the epoch) cannot change the answer. */
  select(block: Block, selection: RunSelection, worst: bigint | undefined): RowSelection {
    if (this.#rows.length < block.rowCount) this.#rows = new Uint32Array(block.rowCount);
    const from = Number(this.#plan.fromNs - block.baseNs);
    const to = Number(this.#plan.toNs - block.baseNs) - 1;
    const count = this.#within(block, selection, from, to);
    const bound = worst === undefined ? undefined : Number(worst - block.baseNs);
    return { rows: this.#rows, count: this.#onlyBetter(block, count, bound) };
  }

  /** Collects the rows with from <= time <= to. */
  #within(block: Block, selection: RunSelection, from: number, to: number): number {
    const rows = this.#rows;
    const { minTime, maxTime } = block.runs;
    let count = 0;
    forEachStretch(block, selection, (run, first, end) => {
      if (maxTime[run]! < from || minTime[run]! > to) return;
      const isInside = minTime[run]! >= from && maxTime[run]! <= to;
      count = isInside
        ? addAll(rows, count, first, end)
        : addBetween(rows, count, { first, end, times: block.timestamps(), from, to });
    });
    return count;
  }

  /** Drops rows worse than the bound, and of a pipeline that keeps every row those that others push out. */
  #onlyBetter(block: Block, count: number, bound: number | undefined): number {
    const better = bound === undefined ? count : this.#upTo(block, count, bound);
    const limit = this.#limit;
    if (limit === undefined || better <= limit) return better;
    return this.#upTo(block, better, this.#timeOfRank(block, better, limit));
  }

  /** Keeps the rows that are not worse than a time. */
  #upTo(block: Block, count: number, bound: number): number {
    const backward = this.#plan.direction === "backward";
    const times = block.timestamps();
    const rows = this.#rows;
    let kept = 0;
    for (let i = 0; i < count; i++) {
      const row = rows[i]!;
      const time = times[row]!;
      if (backward ? time >= bound : time <= bound) rows[kept++] = row;
    }
    return kept;
  }

  /** The time of the best row but `rank - 1`. */
  #timeOfRank(block: Block, count: number, rank: number): number {
    const all = block.timestamps();
    const times = new Float64Array(count);
    for (let i = 0; i < count; i++) times[i] = all[this.#rows[i]!]!;
    times.sort();
    return times[this.#plan.direction === "backward" ? count - rank : rank - 1]!;
  }
}

/** Adds the rows first .. end - 1 behind `count` others; gives their number with these. */
function addAll(rows: Uint32Array, count: number, first: number, end: number): number {
  // A loop over what a closure holds is several times as slow.
  let at = count;
  for (let row = first; row < end; row++) rows[at++] = row;
  return at;
}

interface TimedRows {
  readonly first: number;
  readonly end: number;
  readonly times: Float64Array;
  readonly from: number;
  readonly to: number;
}

/** Adds those of them with from <= time <= to. */
function addBetween(
  rows: Uint32Array,
  count: number,
  { first, end, times, from, to }: TimedRows,
): number {
  let at = count;
  for (let row = first; row < end; row++) {
    if (times[row]! >= from && times[row]! <= to) rows[at++] = row;
  }
  return at;
}
