import type { RowSelection } from "@skald/kernels";
import type { Block, BlockFacts, BytesColumn, Labels } from "@skald/model";
import { Budget } from "../plan/budget.js";
import type { ImpliedNeedles } from "./needles.js";
import type { PipelineOptions, PipelineRun, RowBatch, RunOptions } from "./pipeline.js";
import {
  type BlockRows,
  type Demand,
  LineBuilder,
  LineSource,
  type PreparedStage,
  type RowStage,
  type RowState,
  type StageContext,
} from "./row/row.js";
import {
  BlockMetadata,
  CurrentLabels,
  LabelSlots,
  type MetadataValues,
  type StreamContext,
} from "./row/row-labels.js";
import { SeriesInterner } from "./series-interner.js";
import { BlockLabelFilter, type LabelPrefilter, type RowValue } from "./stage/label-filter.js";
import { BlockLineFilter, type LineFilter, selectAnyText } from "./stage/line-filter.js";
import { FilterRows } from "./stage/row-sets.js";

/** Names that a run may learn before it forgets all but the series. */
const namesMax = 200_000;

/** One scan on one thread: narrows whole blocks first, then runs the other stages row by row. */
export class BlockRun implements PipelineRun {
  readonly series: SeriesInterner;
  readonly #compiled: CompiledPipeline;
  readonly #lineFilter: BlockLineFilter;
  readonly #filterRows: FilterRows;
  readonly #lines: LineBuilder;
  /** Counts rows and what templates make of them. */
  readonly #budget: Budget;
  #state!: RunState;
  #selection: RowSelection = { rows: new Uint32Array(0), count: 0 };
  #rows = new Uint32Array(0);
  #ids = new Uint32Array(0);
  #values = new Float64Array(0);
  readonly #codeSeries = {
    stream: undefined as StreamContext | undefined,
    metadata: undefined as BlockMetadata | undefined,
    ids: new Int32Array(256),
  };

  constructor(compiled: CompiledPipeline, { check, maxLineBytes }: RunOptions = {}) {
    this.#compiled = compiled;
    const shouldStop = () => {
      check?.();
      return false;
    };
    this.#budget = new Budget(check === undefined ? {} : { shouldStop });
    this.series = new SeriesInterner(compiled.options, maxLineBytes);
    this.#lineFilter = new BlockLineFilter(compiled.lineFilters);
    this.#filterRows = new FilterRows(compiled.lineFilters);
    this.#lines = new LineBuilder(maxLineBytes);
    this.#begin();
  }

  mayPass(facts: BlockFacts): Uint32Array | undefined {
    return this.#filterRows.passing(facts);
  }

  process(
    block: Block,
    streamLabels: (stream: number) => Labels,
    selection: Readonly<RowSelection>,
  ): RowBatch {
    if (this.#state.labels.names.count > namesMax) this.#begin();
    const { lineFilters, labelFilters, changesLines, unwrap } = this.#compiled;
    this.#reserve(selection);
    const state = this.#state;
    state.beginBlock(block, this.#compiled.metadata);
    this.#lines.begin();
    const chosen = this.#selection;
    if (labelFilters.length > 0) state.front.apply(block, streamLabels, chosen);
    if (lineFilters.length > 0 && chosen.count > 0) {
      this.#lineFilter.apply(block, chosen);
    }
    if (chosen.count > 0) this.#applyImplied(block, streamLabels, chosen);
    const count = chosen.count === 0 ? 0 : this.#runRows(block, streamLabels, chosen);
    return {
      count,
      rows: this.#rows,
      series: this.#ids,
      ...(unwrap === undefined ? {} : { values: this.#values }),
      ...(changesLines ? { lines: this.#lines.finish() } : {}),
    };
  }

  /** Skips lines that cannot hold the value that a later filter wants. */
  #applyImplied(
    block: Block,
    streamLabels: (stream: number) => Labels,
    chosen: RowSelection,
  ): void {
    for (const { label, anyOf } of this.#compiled.implied) {
      if (block.metadata(label) !== undefined || isStreamLabel(block, streamLabels, label))
        continue;
      selectAnyText(anyOf, block.lines(), block.rowCount, chosen);
    }
  }

  /** Runs the stages on the chosen rows, stream by stream; answers how many survive. */
  #runRows(block: Block, streamLabels: (stream: number) => Labels, chosen: RowSelection): number {
    const { labels } = this.#state;
    const { tail, unwrap, usesLines } = this.#compiled;
    const lines =
      usesLines && (tail.length > 0 || unwrap !== undefined) ? block.lines() : undefined;
    if (lines !== undefined) {
      this.#state.prepareRows({ block, lines, selection: chosen, streamLabels });
    }
    const { runs } = block;
    const { rows } = chosen;
    let count = 0;
    let at = 0;
    for (let run = 0; run < runs.count && at < chosen.count; run++) {
      const runEnd = runs.rowStart[run + 1]!;
      if (rows[at]! >= runEnd) continue;
      const from = at;
      while (at < chosen.count && rows[at]! < runEnd) at++;
      const stream = labels.beginStream(streamLabels(runs.stream[run]!));
      count =
        tail.length === 0 && unwrap === undefined
          ? this.#fill(stream, from, at, count)
          : this.#runStages(lines, stream, from, at, count);
    }
    return count;
  }

  /** Rows that only need their series. */
  #fill(stream: StreamContext, from: number, to: number, count: number): number {
    const { labels } = this.#state;
    const { rows } = this.#selection;
    const constant = this.#constantSeries(stream);
    if (constant >= 0) {
      for (let i = from; i < to; i++) {
        this.#rows[count] = rows[i]!;
        this.#ids[count++] = constant;
      }
      return count;
    }
    const codes = this.#onlyDictionary();
    const known = codes && this.#seriesOfCodes(stream);
    for (let i = from; i < to; i++) {
      const row = rows[i]!;
      const code = codes === undefined ? -1 : codes[row]!;
      let id = known === undefined ? -1 : known[code]!;
      if (id < 0) {
        labels.beginRow(row);
        id = this.series.idOf(stream);
        if (known !== undefined) known[code] = id;
      }
      this.#rows[count] = row;
      this.#ids[count++] = id;
    }
    return count;
  }

  /** The series of all rows of the stream when no metadata is looked at, else -1. */
  #constantSeries(stream: StreamContext): number {
    const { labels } = this.#state;
    const { metadata } = labels;
    if (metadata !== undefined) {
      const { groups } = this.series;
      const isUsed = groups === undefined || groups.some((slot) => metadata.columnOf(slot));
      if (metadata.hasErrors || (isUsed && metadata.columns.length > 0)) return -1;
    }
    if (stream.seriesId < 0) {
      labels.beginRow(0);
      stream.seriesId = this.series.idOf(stream);
    }
    return stream.seriesId;
  }

  /** Series by code of a dictionary, -1 where not known yet: the same array while block and labels of streams stay. */
  #seriesOfCodes(stream: StreamContext): Int32Array {
    const { metadata } = this.#state.labels;
    const known = this.#codeSeries;
    if (known.stream === stream && known.metadata === metadata) return known.ids;
    known.stream = stream;
    known.metadata = metadata;
    return known.ids.fill(-1);
  }

  /** The codes of the one metadata column that the series depend on, if it is a dictionary. */
  #onlyDictionary(): Uint8Array | undefined {
    const { metadata } = this.#state.labels;
    if (metadata === undefined || metadata.hasErrors) return undefined;
    const { groups } = this.series;
    let only: MetadataValues | undefined;
    let count = 0;
    if (groups === undefined) {
      only = metadata.columns[0];
      count = metadata.columns.length;
    } else {
      for (let i = 0; i < groups.length; i++) {
        const values = metadata.columnOf(groups[i]!);
        if (values === undefined) continue;
        only = values;
        count++;
      }
    }
    const column = count === 1 ? only?.column : undefined;
    return column?.kind === "dictionary" ? column.codes : undefined;
  }

  #runStages(
    lines: BytesColumn | undefined,
    stream: StreamContext,
    from: number,
    to: number,
    count: number,
  ): number {
    const state = this.#state;
    const { labels, line, stages, value } = state;
    const { changesLines } = this.#compiled;
    const { rows } = this.#selection;
    next: for (let i = from; i < to; i++) {
      this.#budget.work(1);
      const row = rows[i]!;
      labels.beginRow(row);
      state.position = i;
      if (lines !== undefined) line.setRow(lines, row);
      else line.clear();
      for (let s = 0; s < stages.length; s++) if (!stages[s]!()) continue next;
      if (value !== undefined) {
        const number = value();
        if (number === undefined) continue;
        this.#values[count] = number;
      }
      this.#rows[count] = row;
      this.#ids[count++] = this.series.idOf(stream);
      if (changesLines) this.#lines.append(line);
    }
    return count;
  }

  #reserve({ rows, count }: Readonly<RowSelection>): void {
    if (this.#rows.length < count) {
      this.#rows = new Uint32Array(count);
      this.#ids = new Uint32Array(count);
      if (this.#compiled.unwrap !== undefined) this.#values = new Float64Array(count);
      this.#selection = { rows: new Uint32Array(count), count: 0 };
    }
    this.#selection.rows.set(rows.subarray(0, count));
    this.#selection.count = count;
  }

  #begin(): void {
    this.#state = new RunState(this.#compiled, this.#budget);
    this.series.bind(this.#state.labels);
  }
}

/** The stages bound to the labels and the line of the current row. */
class RunState implements RowState {
  readonly labels = new CurrentLabels(new LabelSlots());
  readonly line = new LineSource();
  readonly stages: readonly RowStage[];
  readonly value: RowValue | undefined;
  readonly front: BlockLabelFilter;
  readonly budget: Budget;
  position = 0;
  readonly #preparations: ((rows: BlockRows) => void)[] = [];
  readonly #nowNs: bigint;
  #block: Block | undefined;

  constructor({ tail, unwrap, labelFilters, options }: CompiledPipeline, budget: Budget) {
    this.budget = budget;
    this.#nowNs = options.nowNs ?? 0n;
    this.stages = tail.map(({ prepare, context }) => prepare(this, context));
    this.value = unwrap?.(this);
    this.front = new BlockLabelFilter(labelFilters, this);
  }

  beginBlock(block: Block, metadata: CompiledPipeline["metadata"]): void {
    this.#block = block;
    const wanted = metadata === "all" ? true : [...metadata];
    const columns = new BlockMetadata(block, wanted, this.labels.names);
    const isEmpty = columns.columns.length === 0 && !columns.hasErrors;
    this.labels.metadata = isEmpty ? undefined : columns;
  }

  beforeRows(prepare: (rows: BlockRows) => void): void {
    this.#preparations.push(prepare);
  }

  prepareRows(rows: BlockRows): void {
    for (const prepare of this.#preparations) prepare(rows);
  }

  timestampNs(): bigint {
    const block = this.#block as Block;
    return block.baseNs + BigInt(block.timestamps()[this.labels.row]!);
  }

  nowNs(): bigint {
    return this.#nowNs;
  }
}

function isStreamLabel(
  { runs }: Block,
  streamLabels: (stream: number) => Labels,
  label: string,
): boolean {
  for (let run = 0; run < runs.count; run++) {
    if (streamLabels(runs.stream[run]!).names.includes(label)) return true;
  }
  return false;
}

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
  /** Whether lines are used for more than the filters in `lineFilters`. */
  readonly usesLinesBehind: boolean;
  readonly usesTimestamps: boolean;
  readonly changesLines: boolean;
  readonly metadata: Demand;
}

export interface TailStage {
  readonly prepare: PreparedStage;
  readonly context: StageContext;
}
