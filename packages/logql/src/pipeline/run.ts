import type { RowSelection } from "@skald/kernels";
import type { Block, BlockFacts, BytesColumn, DictionaryColumn, Labels } from "@skald/model";
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
import type { RowValue } from "./stage/label-filter.js";
import { BlockLabelFilter, type LabelPrefilter } from "./stage/label-prefilter.js";
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
  readonly #codeSeries: CodeSeries = {
    stream: undefined,
    name: "",
    dictionary: undefined,
    ids: noIds,
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
    const { unwrap, usesLines } = this.#compiled;
    const stages = this.#state.front.leftOf(this.#state.stages);
    const isPlain = stages.length === 0 && unwrap === undefined;
    const lines = usesLines && !isPlain ? block.lines() : undefined;
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
      const values = stages.length === 0 ? this.#state.valuesByCode() : undefined;
      if (isPlain) count = this.#fill(stream, from, at, count);
      else if (values !== undefined) count = this.#fillValues(values, stream, from, at, count);
      else count = this.#runStages(stages, lines, stream, from, at, count);
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
    const coded = this.#onlyDictionary();
    const codes = coded?.column.codes;
    const known = coded && this.#seriesOfCodes(stream, coded);
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

  /** Rows that only need their series and a number that stands for a value of a dictionary. */
  #fillValues(
    { codes, numbers, kinds }: ValuesByCode,
    stream: StreamContext,
    from: number,
    to: number,
    count: number,
  ): number {
    const { labels } = this.#state;
    const { rows } = this.#selection;
    const constant = this.#constantSeries(stream);
    const coded = constant < 0 ? this.#onlyDictionary() : undefined;
    const known = coded && this.#seriesOfCodes(stream, coded);
    const keys = coded?.column.codes ?? codes;
    for (let i = from; i < to; i++) {
      const row = rows[i]!;
      const code = codes[row]!;
      let kind = kinds[code]!;
      if (kind === valueKinds.none) continue;
      let id = constant;
      if (kind === valueKinds.number && known !== undefined) id = known[keys[row]!]!;
      if (kind !== valueKinds.number || id < 0) {
        labels.beginRow(row);
        if (kind !== valueKinds.number) kind = this.#state.readValue(code);
        if (kind === valueKinds.none) continue;
        id = this.series.idOf(stream);
        if (kind === valueKinds.number && known !== undefined) known[keys[row]!] = id;
      }
      this.#values[count] = numbers[code]!;
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

  /** Series by code of a dictionary, -1 where not known yet: the same array while dictionary and labels of streams stay. */
  #seriesOfCodes(stream: StreamContext, { name, column: { dictionary } }: CodedValues): Int32Array {
    const known = this.#codeSeries;
    const isSame = known.stream === stream && known.name === name;
    if (isSame && known.dictionary === dictionary) return known.ids;
    const values = dictionary.offsets.length - 1;
    if (known.ids.length < values) known.ids = new Int32Array(values);
    known.stream = stream;
    known.name = name;
    known.dictionary = dictionary;
    return known.ids.fill(-1);
  }

  /** The one metadata column that the series depend on, if it is a dictionary. */
  #onlyDictionary(): CodedValues | undefined {
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
    return count === 1 && only?.column.kind === "dictionary" ? (only as CodedValues) : undefined;
  }

  #runStages(
    stages: readonly RowStage[],
    lines: BytesColumn | undefined,
    stream: StreamContext,
    from: number,
    to: number,
    count: number,
  ): number {
    const state = this.#state;
    const { labels, line, value } = state;
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

/** A metadata column with a dictionary. */
type CodedValues = MetadataValues & { readonly column: DictionaryColumn };

const noIds = new Int32Array(0);

/** The series of the values of a dictionary. */
interface CodeSeries {
  stream: StreamContext | undefined;
  name: string;
  dictionary: BytesColumn | undefined;
  ids: Int32Array;
}

/** What `unwrap` makes of a value. A row whose value fails has an error, which others of the code have, too. */
const valueKinds = { unknown: -1, none: 0, number: 1, failed: 2 } as const;

/** The numbers that the values of a dictionary stand for, and their kinds. */
interface ValuesByCode {
  codes: DictionaryColumn["codes"];
  dictionary: BytesColumn;
  numbers: Float64Array;
  kinds: Int8Array;
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
  /** Slot of the label whose value alone says what number a row has; -1 without one. */
  readonly #valueSlot: number;
  #values: ValuesByCode | undefined;
  #block: Block | undefined;

  constructor(compiled: CompiledPipeline, budget: Budget) {
    const { tail, unwrap, labelFilters, options, valueLabel } = compiled;
    this.budget = budget;
    this.#nowNs = options.nowNs ?? 0n;
    this.stages = tail.map(({ prepare, context }) => prepare(this, context));
    this.value = unwrap?.(this);
    this.#valueSlot = valueLabel === undefined ? -1 : this.labels.names.slotOf(valueLabel);
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

  /** What is known of the numbers of the current stream, where the unwrapped label is a dictionary. */
  valuesByCode(): ValuesByCode | undefined {
    const { metadata } = this.labels;
    if (this.#valueSlot < 0 || metadata === undefined || metadata.hasErrors) return undefined;
    const column = metadata.columnOf(this.#valueSlot)?.column;
    if (column?.kind !== "dictionary") return undefined;
    const { codes, dictionary } = column;
    if (this.#values?.dictionary !== dictionary) {
      const values = dictionary.offsets.length - 1;
      const kinds = new Int8Array(values).fill(valueKinds.unknown);
      this.#values = { codes, dictionary, numbers: new Float64Array(values), kinds };
    }
    this.#values.codes = codes;
    return this.#values;
  }

  /** Reads the value of the current row, which has this code, and answers its kind. */
  readValue(code: number): number {
    const { kinds, numbers } = this.#values!;
    const number = this.value!();
    if (number === undefined) kinds[code] = valueKinds.none;
    else {
      numbers[code] = number;
      kinds[code] = this.labels.error === "" ? valueKinds.number : valueKinds.failed;
    }
    return kinds[code]!;
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
  readonly valueLabel: string | undefined;
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
