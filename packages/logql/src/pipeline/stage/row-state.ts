import type { LabelFilter } from "../../syntax/ast.js";
import type { LineSource } from "../row/line.js";
import type { RowLabels } from "../row/row-labels.js";

/** The row that the stages of a run work on, one after the other. */
export interface RowState {
  readonly labels: RowLabels;
  readonly line: LineSource;
  /** ns since the epoch */
  timestampNs(): bigint;
  nowNs(): bigint;
}

/** Runs one stage on the current row; false drops the row. */
export type RowStage = () => boolean;

/** A stage that is checked and prepared; gives a closure for one run. */
export type PreparedStage = (row: RowState, context: StageContext) => RowStage;

export interface StageContext {
  /** What later stages and the output use of what this stage may set. */
  readonly demand: Demand;
  readonly guard: ParserGuard;
}

/** Labels that are used: everything, or these. */
export type Demand = "all" | ReadonlySet<string>;

/** The filters that a parser asks as soon as it has found a value: by label name, the first later one. */
export type ParserGuard = ReadonlyMap<string, LabelFilter>;
