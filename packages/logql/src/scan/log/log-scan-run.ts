import { type Block, dayNs } from "@skald/model";
import {
  compilePipeline,
  type Pipeline,
  type PipelineRun,
  type RowBatch,
} from "../../pipeline/pipeline.js";
import type { LogPlan } from "../../plan/plan.js";
import type { ColumnNeeds, RunSelection, StreamLabels } from "../metric/metric-scan.js";
import { BestRows, timestampOf } from "./best-rows.js";
import type { LogPartial, LogScan } from "./log-scan.js";
import { LogSelection } from "./selection.js";

/** Label sets that a run of the pipeline may remember before it is replaced by a fresh one. */
const maxRememberedSeries = 20_000;

/**
 * Rows kept for a query with an interval: which of them are returned is known only when all scans are merged, so more
 * than the limit are needed.
 */
export const maxRowsBeforeThinning = 100_000;

/** The scan of a log query. */
export class LogQueryScan implements LogScan {
  readonly needs: ColumnNeeds;
  readonly #pipeline: Pipeline;
  readonly #best: BestRows;
  readonly #selection: LogSelection;
  #run: PipelineRun;

  constructor(plan: LogPlan) {
    const { stages } = plan.log;
    this.#pipeline = compilePipeline({ stages, output: { kind: "log" } });
    this.#run = this.#pipeline.start();
    const limit = plan.intervalNs > 0n ? Math.max(plan.limit, maxRowsBeforeThinning) : plan.limit;
    this.#best = new BestRows(limit, plan.direction, plan.maxLineBytes);
    const dropsRows = stages.some(({ kind }) => kind === "line_filter" || kind === "label_filter");
    this.#selection = new LogSelection(plan, dropsRows ? undefined : limit);
    this.needs = { lines: true, timestamps: true, metadata: this.#pipeline.needs.metadata };
  }

  worstTime(): bigint | undefined {
    const { worst } = this.#best;
    return worst === undefined ? undefined : timestampOf(worst);
  }

  addBlock(block: Block, streams: StreamLabels, selection: RunSelection, sequence: number): void {
    const wanted = this.#selection.select(block, selection, this.worstTime());
    if (this.#selection.leftOut) this.#best.markTruncated();
    if (wanted.count === 0) return;
    if (this.#run.series.count > maxRememberedSeries) this.#run = this.#pipeline.start();
    const batch = this.#run.process(block, streams, wanted);
    this.#addRows(block, batch, sequence);
    if (this.#best.isFull) this.#best.prune();
  }

  finish(): LogPartial {
    const rows = this.#best.finish();
    return {
      rowCount: rows.count,
      timestamps: rows.timestamps(),
      sequence: rows.sequences(),
      row: rows.rows(),
      labelSet: rows.labelSets(),
      lines: rows.lines(),
      labels: this.#best.labels,
      truncated: this.#best.truncated,
    };
  }

  #addRows(block: Block, batch: RowBatch, sequence: number): void {
    const day = Number(block.baseNs / dayNs);
    const times = block.timestamps();
    const lines = batch.lines ?? block.lines();
    const labelSetOf = new Map<number, number>();
    for (let i = 0; i < batch.count; i++) {
      const row = batch.rows[i] as number;
      const line = batch.lines === undefined ? row : i;
      const place = {
        day,
        time: times[row] as number,
        sequence,
        row,
        labelSet: this.#labelSet(batch.series[i] as number, labelSetOf),
      };
      this.#best.push(
        place,
        lines.bytes.subarray(lines.offsets[line] as number, lines.offsets[line + 1] as number),
      );
    }
  }

  #labelSet(series: number, known: Map<number, number>): number {
    const found = known.get(series);
    if (found !== undefined) return found;
    const { labels, categories } = this.#run.series.get(series);
    if (categories === undefined) throw new Error("log output without label categories");
    const labelSet = this.#best.addLabels({ labels, categories });
    known.set(series, labelSet);
    return labelSet;
  }
}
