import { type Block, type BytesColumn, dayNs, type NeedleFormula } from "@skald/model";
import { compilePipeline } from "../../pipeline/pipeline.js";
import type { Pipeline, PipelineRun, RowBatch, RunOptions } from "../../pipeline/types.js";
import type { LogPlan } from "../../plan/plan.js";
import type { RowLabels } from "../../plan/result.js";
import { factsOf } from "../../syntax/stage-facts.js";
import type { ColumnNeeds, RunSelection, StreamLabels } from "../block-selection.js";
import { StreamKeys } from "../stream-keys.js";
import { BestRows, timestampOf } from "./best-rows.js";
import type { RowPlaces } from "./row-store.js";
import { LogSelection } from "./selection.js";

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
  addBlock(block: Block, streams: StreamLabels, selection: RunSelection, sequence: number): void;
  /** What was kept; the scan cannot be used afterwards. */
  finish(): LogPartial;
}

/** The best rows of one scan, best first: plain data. */
export interface LogPartial {
  readonly rowCount: number;
  readonly places: RowPlaces;
  /** Index into `labels`. */
  readonly labelSet: Uint32Array;
  readonly lines: BytesColumn;
  readonly labels: readonly RowLabels[];
  /** True when rows worse than the last one may have been left out. */
  readonly truncated: boolean;
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
  readonly #pipeline: Pipeline;
  readonly #best: BestRows;
  readonly #selection: LogSelection;
  readonly #runOptions: RunOptions;
  readonly #streamKeys = new StreamKeys();
  #run: PipelineRun;

  constructor(plan: LogPlan, check: (() => void) | undefined) {
    const { stages } = plan.log;
    this.#pipeline = compilePipeline({ stages, output: { kind: "log" }, nowNs: plan.nowNs });
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

  addBlock(block: Block, streams: StreamLabels, selection: RunSelection, sequence: number): void {
    const wanted = this.#selection.select(block, selection, this.worstTime());
    if (wanted.count === 0) return;
    if (this.#run.series.count > maxRememberedSeries) {
      this.#best.makeLabels();
      this.#run = this.#pipeline.start(this.#runOptions);
    }
    const batch = this.#run.process(block, streams, wanted);
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
