import type { NeedleFormula } from "@skald/model";
import type { LineFilter } from "./stage/line-filter.js";
import type { Demand, PreparedStage, RowStage, RowState, StageContext } from "./stage/row-state.js";
import type { RowValue } from "./stage/unwrap.js";
import type { PipelineOptions } from "./types.js";

/** A pipeline taken apart: what works on whole blocks, and what works row by row behind it. */
export interface CompiledPipeline {
  readonly options: PipelineOptions;
  /** Label filters that only stream labels and metadata can decide. */
  readonly labelFilters: readonly LabelPrefilter[];
  /** Line filters on the line as it is stored, wherever they stood. */
  readonly lineFilters: readonly LineFilter[];
  readonly implied: readonly ImpliedNeedles[];
  readonly tail: readonly TailStage[];
  readonly unwrap: ((row: RowState) => RowValue) | undefined;
  readonly usesLines: boolean;
  readonly usesTimestamps: boolean;
  readonly changesLines: boolean;
  readonly metadata: Demand;
}

export interface LabelPrefilter {
  readonly prepare: (row: RowState) => RowStage;
  readonly names: readonly string[];
  /** What structured metadata has of a row that passes, where no stream label has the name. */
  readonly formula?: NeedleFormula | undefined;
  /** The whole filter is an equality with this value, which is not empty. */
  readonly equals?: Uint8Array;
}

/** Rows without any of the texts in the stored line cannot pass a later filter on the label. */
export interface ImpliedNeedles {
  /** The label must come from the line: neither the stream nor metadata may have it. */
  readonly label: string;
  readonly anyOf: readonly Uint8Array[];
}

export interface TailStage {
  readonly prepare: PreparedStage;
  readonly context: StageContext;
}
