import type { Block, NeedleFormula, TimeRange } from "@skald/model";
import { compilePipeline } from "../../pipeline/pipeline.js";
import type { Pipeline, PipelineRun } from "../../pipeline/types.js";
import type { Grouping, LogExpr } from "../../syntax/ast.js";
import type { ColumnNeeds, RunSelection, StreamLabels } from "../block-selection.js";
import { LogSelection } from "./selection.js";

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
