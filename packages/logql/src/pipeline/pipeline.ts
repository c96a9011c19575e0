import type { RowSelection } from "@skald/kernels";
import type { Block, BlockFacts, BytesColumn, Labels, NeedleFormula } from "@skald/model";
import type { LabelCategories } from "../plan/plan.js";
import type { Grouping, Stage, Unwrap } from "../syntax/ast.js";

/** What `compilePipeline` makes a pipeline from. */
export interface PipelineOptions {
  readonly stages: readonly Stage[];
  readonly unwrap?: Unwrap;
  readonly output: PipelineOutput;
  /** The caller looks at the lines of a metric's rows: their bytes are counted. */
  readonly countsLines?: boolean;
  /** What `now` in a template is: ns since the epoch, the same for all threads of a query. Absent: 0. */
  readonly nowNs?: bigint;
}

/**
 * Which labels of a surviving row identify its series: all of them (a log query, and a metric without grouping), or
 * those that the grouping leaves.
 */
export type PipelineOutput =
  | { readonly kind: "log" }
  | { readonly kind: "metric"; readonly grouping?: Grouping };

/** The stages of a query, compiled; immutable, so every thread may start its own runs. */
export interface Pipeline {
  /** What a scan must read. Timestamps are needed only where a template asks for them. */
  readonly needs: PipelineNeeds;
  /** What a block must hold for a row to survive: what block filters can be asked. Absent: nothing is known. */
  readonly formula?: NeedleFormula;
  /** Whether the lines of a block are read, given what is known without them. */
  readsLines(facts: BlockFacts | undefined): boolean;
  start(options?: RunOptions): PipelineRun;
}

/** What ends a run in the middle of a block. */
export interface RunOptions {
  /** Called every few thousand rows or made characters; throws when the query should stop. */
  readonly check?: (() => void) | undefined;
  /** Bytes that made lines of a block, and label sets of the run, may take: more throw invalid_argument. 512 MiB if not given. */
  readonly maxLineBytes?: number | undefined;
}

export interface PipelineNeeds {
  /** False when no stage looks at the line. Log output always needs it; byte counts are the caller's own need. */
  readonly lines: boolean;
  readonly timestamps: boolean;
  /** Names of structured metadata that are looked at: true = all, an empty list = none. */
  readonly metadata: true | readonly string[];
}

/** The state of one scan on one thread: interned series and scratch memory. */
export interface PipelineRun {
  /**
   * Runs the selected rows of a block through the stages. `streamLabels(i)` are the labels of stream i of the source
   * and should be the same object each time. The answer is valid until the next call.
   */
  process(
    block: Block,
    streamLabels: (stream: number) => Labels,
    selection: Readonly<RowSelection>,
  ): RowBatch;
  /** The rows that may pass the line filters, as words of bits (see `RowSet`); undefined when that may be any row. */
  mayPass(facts: BlockFacts): Uint32Array | undefined;
  readonly series: SeriesTable;
}

/** The surviving rows in ascending order; only the first `count` entries of each array are meant. */
export interface RowBatch {
  readonly count: number;
  readonly rows: Uint32Array;
  /** Id of each row in the series table of the run. */
  readonly series: Uint32Array;
  /** Unwrapped value of each row; only with unwrap. */
  readonly values?: Float64Array;
  /** Line i of the batch (not of the block); only when a stage may have changed lines. */
  readonly lines?: BytesColumn;
}

/**
 * Every label set seen so far; ids count up from 0 and stay valid within the run. Rows with equal labels share an id
 * unless their labels were found in another order; labels are made when `get` first asks for them.
 */
export interface SeriesTable {
  readonly count: number;
  get(id: number): Series;
}

export interface Series {
  /**
   * All labels of the series. Unlike those of a stream they may hold empty values in log output: a parser or
   * label_format that set an empty value is visible there.
   */
  readonly labels: Labels;
  /** The same labels by origin, for answers that keep them apart; only in log output. */
  readonly categories?: LabelCategories;
  /**
   * The rows of this series ended with `__error__` set in a metric query that did not group by it: the query must
   * fail if one of them counts.
   */
  readonly error?: SeriesError;
}

export interface SeriesError {
  /** `JSONParserErr`, ... */
  readonly kind: string;
  /** Canonical text of all labels of the first such row, `__error__` among them. */
  readonly labelsText: string;
}
