import type { RowSelection } from "@skald/kernels";
import type { Block, BytesColumn, Labels } from "@skald/model";
import type { Budget } from "../../plan/budget.js";
import type { LabelFilter } from "../../syntax/ast.js";
import type { LineSource } from "../row/line.js";
import type { RowLabels } from "../row/row-labels.js";

/** The row that the stages of a run work on, one after the other. */
export interface RowState {
  readonly labels: RowLabels;
  readonly line: LineSource;
  /** Where templates count what they make. */
  readonly budget: Budget;
  /** Place of the row among the selected rows of its block. */
  readonly position: number;
  /** ns since the epoch */
  timestampNs(): bigint;
  nowNs(): bigint;
  /** Calls back for each block before its rows are run. */
  beforeRows(prepare: (rows: BlockRows) => void): void;
}

/** The rows of a block that the first stage is going to see, with their stored lines. */
export interface BlockRows {
  readonly block: Block;
  readonly lines: BytesColumn;
  readonly selection: Readonly<RowSelection>;
  readonly streamLabels: (stream: number) => Labels;
}

/** Runs one stage on the current row; false drops the row. */
export type RowStage = () => boolean;

/** A stage that is checked and prepared; gives a closure for one run. */
export type PreparedStage = (row: RowState, context: StageContext) => RowStage;

export interface StageContext {
  /** What later stages and the output use of what this stage may set. */
  readonly demand: Demand;
  readonly guard: ParserGuard;
  /** No stage runs before on rows: this one sees all selected rows, with the lines as they are stored. */
  readonly isFirst: boolean;
}

/** Labels that are used: everything, or these. */
export type Demand = "all" | ReadonlySet<string>;

/** The filters that a parser asks as soon as it has found a value: by label name, the first later one. */
export type ParserGuard = ReadonlyMap<string, LabelFilter>;
