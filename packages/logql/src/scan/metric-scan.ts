import type { RowSelection } from "@skald/kernels";
import type { Block, Labels, NeedleFormula, RowSet } from "@skald/model";
import type { RowBatch } from "../pipeline/pipeline.js";
import { keepRows } from "../pipeline/stage/row-sets.js";
import { type LeafPlan, lastWindowEnd, wantsTimes } from "../plan/plan.js";
import { type BucketCursor, WindowGrid } from "../plan/window-grid.js";
import { factsOf } from "../syntax/ast.js";
import {
  type BlockSummary,
  type ColumnNeeds,
  coversSlice,
  forEachBucket,
  forEachStretch,
  type RunHeader,
  type RunSelection,
  type SlicedRows,
  StreamKeys,
  type StreamLabels,
  type TimedRows,
  WindowRows,
  WindowStretches,
} from "./block-selection.js";
import { accumulators, CellTable, keepsEnd, SampleColumns } from "./cells.js";
import { FieldSeries } from "./field-columns.js";
import type { Findings, FindingsWriter, FoundBlock } from "./findings.js";
import { type MetricPartial, partialOfCells, partialOfSamples } from "./partial.js";
import {
  metadataMatters,
  onlyLevelMatters,
  PipelineSeries,
  SeriesIndex,
  StreamSeries,
} from "./series.js";

/**
 * Accumulates the rows of one leaf, in memory bounded by the plan. Blocks and sources may come in any order; of rows
 * of a stream with equal timestamps first_over_time takes the one added first, last_over_time the one added last. Throws
 * invalid_argument when the rows break a limit of the plan or end in `__error__`.
 */
export interface MetricScan {
  readonly needs: ColumnNeeds;
  /** What a block must hold to have a row that counts; absent: nothing is known. */
  readonly formula: NeedleFormula | undefined;
  /**
   * Counts all rows of a run from its header. False when that cannot be done: the run must then be in a selection
   * given to `addBlock`. Do not offer a run with excluded rows.
   */
  addRun(streams: StreamLabels, block: BlockSummary, run: RunHeader): boolean;
  /** Whether `addRun` counts a run from its rows, times and bytes alone. */
  countsRun(block: BlockSummary, run: Pick<RunHeader, "minTime" | "maxTime">): boolean;
  /**
   * Adds the selected rows that lie in a window and in the leaf's time range. The caller selects streams. What the stages make of rows of
   * the block goes into the findings, where those are given.
   */
  addBlock(
    block: Block,
    streams: StreamLabels,
    selection: RunSelection,
    into?: { readonly findings: FindingsWriter; readonly number: number },
  ): void;
  /** The same by what an earlier scan found. Adds nothing and returns false when that is not all that is asked. */
  addFound(
    block: SlicedRows,
    streams: StreamLabels,
    selection: RunSelection,
    found: FoundBlock,
  ): boolean;
  /** Rows that counted so far. */
  readonly passedRows: number;
  /** What was accumulated; the scan cannot be used afterwards. */
  finish(): MetricPartial;
}

/**
 * Starts a scan of one leaf: compiles its pipeline. `check` is called often, also in the middle of a block, and throws
 * when the query should stop. Throws invalid_argument when a stage cannot be built.
 */
export function startMetricScan(leaf: LeafPlan, check?: () => void): MetricScan {
  return new LeafScan(leaf, check);
}

type FindingsInto = Parameters<MetricScan["addBlock"]>[3];

const noNumbers = new Float64Array(0);
const noOffsets = new Uint32Array(0);

/**
 * The scan of one leaf. Counts and byte counts without stages are taken from headers and timestamps when no metadata
 * can change the series of a row; everything else goes through the pipeline.
 */
class LeafScan implements MetricScan {
  readonly needs: ColumnNeeds;
  readonly formula: NeedleFormula | undefined;
  readonly #leaf: LeafPlan;
  readonly #grid: WindowGrid;
  readonly #index: SeriesIndex;
  readonly #cells: CellTable;
  readonly #samples: SampleColumns;
  readonly #windowRows = new WindowRows();
  readonly #stretches = new WindowStretches();
  readonly #streamKeys = new StreamKeys();
  readonly #streamKeyOf = (row: number) => this.#streamKeys.ofRow(row);
  readonly #pipeline: PipelineSeries;
  readonly #fields: FieldSeries | undefined;
  readonly #check: (() => void) | undefined;
  /** Selected rows that only the parser may judge, and the others. */
  readonly #irregular: RowSelection = { rows: new Uint32Array(0), count: 0 };
  readonly #regular: RowSelection = { rows: new Uint32Array(0), count: 0 };
  readonly #streams: StreamSeries;
  readonly #foundSeries = new Map<readonly Labels[], (place: number) => number>();
  /** True when rows can be counted without running the pipeline. */
  readonly #isPlain: boolean;
  /** The names of the run that was counted last, because comparing names takes longer than counting a run. */
  #lastNames:
    | { readonly names: readonly string[]; readonly matter: "stream" | "level" | "metadata" }
    | undefined;
  #lastCursor: { readonly baseNs: bigint; readonly cursor: BucketCursor } | undefined;

  constructor(leaf: LeafPlan, check: (() => void) | undefined) {
    this.#leaf = leaf;
    this.#check = check;
    this.#grid = new WindowGrid(leaf);
    this.#index = new SeriesIndex(leaf);
    this.#cells = new CellTable(leaf.mode, leaf.maxCells);
    this.#samples = new SampleColumns(leaf.maxCells, wantsTimes(leaf));
    this.#pipeline = new PipelineSeries(leaf, this.#index, check);
    this.#fields = FieldSeries.of(leaf, this.#index, check);
    this.#streams = new StreamSeries(leaf.grouping, this.#index);
    this.#isPlain = isPlain(leaf);
    const { lines, metadata } = this.#pipeline.needs;
    this.formula = this.#pipeline.formula;
    const countsBytes = leaf.mode === "bytes";
    this.needs = {
      lines: lines || countsBytes,
      linesOf: (block) =>
        countsBytes ||
        (this.#pipeline.readsLines(block.facts) && !this.#fields?.sparesLines(block)),
      ...(this.#fields === undefined ? {} : { fields: this.#fields.names }),
      metadata,
      timestamps: true,
    };
  }

  addRun(streams: StreamLabels, block: BlockSummary, run: RunHeader): boolean {
    if (!this.#isPlain) return false;
    const matter = this.#whatMatters(block.metadataNames);
    if (matter === "metadata") return false;
    const cursor = this.#cursorOf(block.baseNs);
    if (!cursor.covers(run.minTime, run.maxTime)) {
      return matter === "stream" && this.#addSlices(streams, run, cursor);
    }
    if (cursor.bucket < 0) return true;
    if (matter === "level") return this.#addLevels(streams, run, cursor.bucket);
    const cell = this.#cells.find(this.#streams.find(streams, run.stream), cursor.bucket);
    this.#cells.rows[cell]! += run.rows;
    if (this.#leaf.mode === "bytes") this.#cells.value[cell]! += run.lineBytes;
    return true;
  }

  countsRun(
    { baseNs, metadataNames }: BlockSummary,
    { minTime, maxTime }: Pick<RunHeader, "minTime" | "maxTime">,
  ): boolean {
    if (!this.#isPlain || this.#whatMatters(metadataNames) !== "stream") return false;
    return this.#cursorOf(baseNs).covers(minTime, maxTime);
  }

  addBlock(
    block: Block,
    streams: StreamLabels,
    selection: RunSelection,
    into?: FindingsInto,
  ): void {
    const cursor = this.#cursorOf(block.baseNs);
    if (this.#isPlain && !metadataMatters(block.metadataNames(), this.#leaf.grouping)) {
      this.#addPlain(block, streams, selection, cursor);
    } else {
      this.#addThroughPipeline(block, streams, { ...selection, into }, cursor);
    }
  }

  addFound(
    block: SlicedRows,
    streams: StreamLabels,
    selection: RunSelection,
    found: FoundBlock,
  ): boolean {
    if (this.#leaf.mode === "count") return this.#countFound(block, selection, found);
    const windowRows = this.#windowRows;
    windowRows.select(block, selection, this.#cursorOf(block.baseNs));
    const batch = found.batchOf(windowRows);
    if (batch === undefined) return false;
    this.#addBatch(batch, this.#seriesIn(found.findings), block, streams, noOffsets);
    return true;
  }

  get passedRows(): number {
    const { count, rows } = this.#cells;
    let sum = 0;
    for (let cell = 0; cell < count; cell++) sum += rows[cell]!;
    return sum;
  }

  finish(): MetricPartial {
    const { mode } = this.#leaf;
    const labels: readonly Labels[] = this.#index.labels;
    if (mode !== "samples") return partialOfCells(mode, labels, this.#cells);
    return partialOfSamples(labels, this.#cells, this.#samples);
  }

  /** Counts need no rows: neighbouring ones of a bucket are added up by series. */
  #countFound(block: SlicedRows, selection: RunSelection, found: FoundBlock): boolean {
    const stretches = this.#stretches;
    stretches.select(block, selection, this.#cursorOf(block.baseNs));
    const { count, from, to, bucket } = stretches;
    for (let i = 0; i < count; i++) if (!found.knows(from[i]!, to[i]!)) return false;
    const seriesOf = this.#seriesIn(found.findings);
    for (let i = 0; i < count; i++) {
      found.count(from[i]!, to[i]!, (place, rows) => {
        const cell = this.#cells.find(seriesOf(place), bucket[i]!);
        this.#cells.rows[cell]! += rows;
      });
    }
    return true;
  }

  /** Counts a run level by level. */
  #addLevels(streams: StreamLabels, run: RunHeader, bucket: number): boolean {
    if (this.#streams.hasLevelLabel(streams, run.stream)) return false;
    const counts = run.levels?.();
    if (counts === undefined) return false;
    counts.levels.forEach((level, i) => {
      if (counts.rows[i] === 0) return;
      const series = this.#streams.findLevel(streams, run.stream, level);
      const cell = this.#cells.find(series, bucket);
      this.#cells.rows[cell]! += counts.rows[i]!;
      if (this.#leaf.mode === "bytes") this.#cells.value[cell]! += counts.lineBytes[i]!;
    });
    return true;
  }

  /** Counts a run slice by slice of time; nothing of it when a slice is cut. */
  #addSlices(streams: StreamLabels, run: RunHeader, cursor: BucketCursor): boolean {
    const slices = run.slices?.();
    if (slices === undefined) return false;
    for (let at = slices.from; at < slices.to; at++) {
      if (!coversSlice(cursor, slices, at, run)) return false;
    }
    let series = -1;
    let cell = -1;
    let bucket = -1;
    for (let at = slices.from; at < slices.to; at++) {
      if (slices.rows[at] === 0) continue;
      coversSlice(cursor, slices, at, run);
      if (cursor.bucket < 0) continue;
      if (cell < 0 || cursor.bucket !== bucket) {
        // A series must not appear before one of its rows is known to count.
        if (series < 0) series = this.#streams.find(streams, run.stream);
        bucket = cursor.bucket;
        cell = this.#cells.find(series, bucket);
      }
      this.#cells.rows[cell]! += slices.rows[at]!;
      if (this.#leaf.mode === "bytes") this.#cells.value[cell]! += slices.lineBytes[at]!;
    }
    return true;
  }

  /** Asked with the same names for all runs of a block. */
  #whatMatters(names: readonly string[]): "stream" | "level" | "metadata" {
    const known = this.#lastNames;
    if (known?.names === names) return known.matter;
    const { grouping } = this.#leaf;
    const isStream = !metadataMatters(names, grouping);
    const matter = isStream ? "stream" : onlyLevelMatters(names, grouping) ? "level" : "metadata";
    this.#lastNames = { names, matter };
    return matter;
  }

  #cursorOf(baseNs: bigint): BucketCursor {
    const known = this.#lastCursor;
    if (known?.baseNs === baseNs) return known.cursor;
    const cursor = this.#grid.cursor(baseNs);
    this.#lastCursor = { baseNs, cursor };
    return cursor;
  }

  #addPlain(
    block: Block,
    streams: StreamLabels,
    selection: RunSelection,
    cursor: BucketCursor,
  ): void {
    const { stream, minTime, maxTime } = block.runs;
    forEachStretch(block, selection, (run, from, to) => {
      const isInOne = cursor.covers(minTime[run]!, maxTime[run]!);
      if (isInOne && cursor.bucket < 0) return;
      // A series must not appear before one of its rows is known to count.
      let series = -1;
      const add = (bucket: number, first: number, end: number) => {
        if (series < 0) series = this.#streams.find(streams, stream[run]!);
        this.#addStretch(block, this.#cells.find(series, bucket), first, end);
      };
      if (isInOne) add(cursor.bucket, from, to);
      else forEachBucket(block.timestamps(), from, to, cursor, add);
    });
  }

  /** Adds neighbouring rows of one cell. */
  #addStretch(block: Block, cell: number, from: number, to: number): void {
    this.#cells.rows[cell]! += to - from;
    if (this.#leaf.mode !== "bytes") return;
    const { offsets } = block.lines();
    this.#cells.value[cell]! += offsets[to]! - offsets[from]!;
  }

  /** The series of the leaf by place in the labels of findings. */
  #seriesIn({ labels }: Findings): (place: number) => number {
    let known = this.#foundSeries.get(labels);
    if (known === undefined) {
      const series: number[] = [];
      known = (place) => {
        series[place] ??= this.#index.find(labels[place]!);
        return series[place]!;
      };
      this.#foundSeries.set(labels, known);
    }
    return known;
  }

  #addThroughPipeline(
    block: Block,
    streams: StreamLabels,
    selection: RunSelection & { readonly into?: FindingsInto | undefined },
    cursor: BucketCursor,
  ): void {
    const windowRows = this.#windowRows;
    const { facts } = block;
    const mayPass = facts === undefined ? undefined : this.#pipeline.mayPass(facts);
    if (mayPass === undefined) windowRows.select(block, selection, cursor);
    else windowRows.selectSome(block, selection, cursor, mayPass);
    if (windowRows.count === 0) return;
    const { into } = selection;
    const keep = ({ seriesOf }: PipelineSeries, batch: RowBatch) => {
      if (into === undefined || mayPass !== undefined) return;
      const place = { number: into.number, rowCount: block.rowCount };
      into.findings.add(place, windowRows, batch, seriesOf, this.#index.labels);
    };
    const view = this.#fields?.view(block, streams, windowRows);
    if (view === undefined || this.#fields === undefined) {
      keep(this.#pipeline, this.#addRows(this.#pipeline, block, streams, windowRows));
      return;
    }
    const { irregular } = block.facts!.fields!;
    const odd = rowsIn(irregular, windowRows, this.#irregular, false);
    if (odd.count === 0) {
      const { pipeline } = this.#fields;
      keep(pipeline, this.#addRows(pipeline, view, streams, windowRows));
      return;
    }
    const regular = rowsIn(irregular, windowRows, this.#regular, true);
    if (regular.count === 0 || !isUnordered(this.#leaf.mode)) {
      keep(this.#pipeline, this.#addRows(this.#pipeline, block, streams, windowRows));
      return;
    }
    try {
      this.#addRows(this.#pipeline, block, streams, odd);
      this.#addRows(this.#fields.pipeline, view, streams, regular);
    } catch (error) {
      // The query fails with the first row that has an error, which a fresh run finds.
      const fresh = new PipelineSeries(this.#leaf, this.#index, this.#check);
      this.#addRows(fresh, block, streams, windowRows);
      throw error;
    }
  }

  /** Runs rows through a pipeline, and adds those that pass to their cells. */
  #addRows(
    pipeline: PipelineSeries,
    block: Block,
    streams: StreamLabels,
    selection: Readonly<RowSelection>,
  ): RowBatch {
    const batch = pipeline.process(block, streams, selection);
    const lines = batch.lines ?? (this.#leaf.mode === "bytes" ? block.lines() : undefined);
    this.#addBatch(batch, pipeline.seriesOf, block, streams, lines?.offsets ?? noOffsets);
    return batch;
  }

  #addBatch(
    batch: RowBatch,
    seriesOf: (id: number) => number,
    block: TimedRows,
    streams: StreamLabels,
    lineOffsets: Uint32Array,
  ): void {
    this.#streamKeys.start(block, streams);
    const { mode } = this.#leaf;
    const needsTimes = keepsEnd(mode) || (mode === "samples" && wantsTimes(this.#leaf));
    const added = {
      count: batch.count,
      rows: batch.rows,
      series: batch.series,
      seriesOf,
      bucketOfRow: this.#windowRows.bucketOfRow,
      values: batch.values ?? noNumbers,
      times: needsTimes ? block.timestamps() : noNumbers,
      streamKeyOf: this.#streamKeyOf,
      timeShift: Number(block.baseNs - lastWindowEnd(this.#leaf.windows)),
      lineOffsets,
      linesByPosition: batch.lines !== undefined,
    };
    if (mode === "samples") this.#samples.add(this.#cells, added);
    else accumulators[mode](this.#cells, added);
  }
}

/** Puts the selected rows that are in a set, or with `negate` the others, into `into`. */
function rowsIn(
  set: RowSet,
  { rows, count }: Readonly<RowSelection>,
  into: RowSelection,
  negate: boolean,
): RowSelection {
  into.count = 0;
  if (set.count === 0 && !negate) return into;
  if (into.rows.length < count) into.rows = new Uint32Array(count);
  into.rows.set(rows.subarray(0, count));
  into.count = count;
  keepRows(set.words, into, negate);
  return into;
}

/** Whether the rows of a block may be added in any order: then the result is the same to the last digit. */
function isUnordered(mode: LeafPlan["mode"]): boolean {
  return mode === "count" || mode === "min" || mode === "max";
}

/** True when every row counts, with a length and a series that no stage changes. */
function isPlain({ stages, unwrap, mode, grouping, extract }: LeafPlan): boolean {
  if (unwrap !== undefined || (mode !== "count" && mode !== "bytes")) return false;
  if (stages.length === 0) return true;
  const isOneGroup = grouping?.without === false && grouping.labels.length === 0;
  const isUnread = mode === "count" && extract === "needed" && isOneGroup;
  return (
    isUnread && !stages.map(factsOf).some(({ filters, hasTemplate }) => filters || hasTemplate)
  );
}
