import { type RowSelection, selectContains } from "@skald/kernels";
import type { Block, BytesColumn, DictionaryColumn, Labels, NeedleFormula } from "@skald/model";
import type { RowStage, RowState } from "../row/row.js";
import type { MetadataValues, StreamContext } from "../row/row-labels.js";
import type { CompiledFilter } from "./label-filter.js";

/** A label filter that only the labels of streams and metadata decide. */
export interface LabelPrefilter {
  readonly prepare: CompiledFilter;
  readonly names: readonly string[];
  /** What structured metadata has of a row that passes, where no stream label has the name. */
  readonly formula?: NeedleFormula | undefined;
  /** The whole filter is an equality with this value, which is not empty. */
  readonly equals?: Uint8Array;
  /**
   * The place among the later stages of a filter that may set an error, as a comparison of numbers does. Rows that it refuses are
   * out in any case; those that it keeps with an error still have to go through it.
   */
  readonly stage?: number | undefined;
}

interface BoundFilter {
  readonly test: RowStage;
  readonly slots: readonly number[];
  readonly equals: Uint8Array | undefined;
  readonly stage: number | undefined;
  /** By code of the dictionary that it was asked last. */
  readonly known: CodeAnswers;
  /** Whether it has kept a row of the block with an error. */
  hasFailed: boolean;
}

interface CodeAnswers {
  dictionary: BytesColumn | undefined;
  stream: StreamContext | undefined;
  answers: Int8Array;
}

/** What a filter says of a row. */
const answer = { unknown: -1, refused: 0, kept: 1, keptWithError: 2 } as const;

const plain = { ignoreCase: false, negate: false };

/**
 * Label filters before any parser. What the labels of the stream decide is asked once per run, what one dictionary
 * column decides once per value, the rest per row; no line is read.
 */
export class BlockLabelFilter {
  readonly #row: RowState;
  readonly #filters: readonly BoundFilter[];

  constructor(filters: readonly LabelPrefilter[], row: RowState) {
    this.#row = row;
    this.#filters = filters.map(({ prepare, names, equals, stage }) => ({
      test: prepare(row),
      slots: names.map((name) => row.labels.names.slotOf(name)),
      equals,
      stage,
      known: { dictionary: undefined, stream: undefined, answers: new Int8Array(0) },
      hasFailed: false,
    }));
  }

  /** Narrows the selection in place. */
  apply(block: Block, streamLabels: (stream: number) => Labels, selection: RowSelection): void {
    const { runs } = block;
    const { rows } = selection;
    for (const filter of this.#filters) filter.hasFailed = false;
    let kept = 0;
    let at = 0;
    for (let run = 0; run < runs.count && at < selection.count; run++) {
      const runEnd = runs.rowStart[run + 1]!;
      if (rows[at]! >= runEnd) continue;
      const from = at;
      while (at < selection.count && rows[at]! < runEnd) at++;
      const stream = this.#row.labels.beginStream(streamLabels(runs.stream[run]!));
      kept = this.#narrowRun(stream, rows, from, at, kept);
    }
    selection.count = kept;
  }

  /** The stages that rows left by `apply` still have to go through. */
  leftOf(stages: readonly RowStage[]): readonly RowStage[] {
    const settled = this.#filters.filter(
      ({ stage, hasFailed }) => stage !== undefined && !hasFailed,
    );
    if (settled.length === 0) return stages;
    return stages.filter((_, i) => !settled.some(({ stage }) => stage === i));
  }

  /** Moves the rows of a run that pass to `kept` and behind. */
  #narrowRun(
    stream: StreamContext,
    rows: Uint32Array,
    from: number,
    to: number,
    kept: number,
  ): number {
    const start = kept;
    if (kept !== from) rows.copyWithin(kept, from, to);
    let end = kept + to - from;
    for (const filter of this.#filters) {
      if (start === end) return end;
      const columns = this.#columnsOf(filter.slots);
      const [only] = columns;
      if (only === undefined)
        end = this.#ask(rows[start]!, filter) === answer.refused ? start : end;
      else if (columns.length > 1 || only.column.kind === "bytes") {
        end = this.#search(rows, start, end, filter, columns);
        end = this.#askRows(rows, start, end, filter);
      } else end = this.#askCodes(rows, start, end, filter, only.column, stream);
    }
    return end;
  }

  #columnsOf(slots: readonly number[]): readonly MetadataValues[] {
    const { metadata } = this.#row.labels;
    if (metadata === undefined) return [];
    return [...new Set(slots.flatMap((slot) => metadata.columnOf(slot) ?? []))];
  }

  /** An equality on a column of bytes: the value is searched in the whole column first. */
  #search(
    rows: Uint32Array,
    start: number,
    end: number,
    { equals }: BoundFilter,
    columns: readonly MetadataValues[],
  ): number {
    const column = columns.length === 1 ? columns[0]?.column : undefined;
    if (equals === undefined || column?.kind !== "bytes") return end;
    const rowCount = column.offsets.length - 1;
    // a search may run to the end of the column, so a short run is not worth it
    if ((end - start) * 4 < rowCount) return end;
    const selection = { rows: rows.subarray(start, end), count: end - start };
    selectContains(column.bytes, column.offsets, rowCount, equals, selection, plain);
    return start + selection.count;
  }

  #askRows(rows: Uint32Array, start: number, end: number, filter: BoundFilter): number {
    let kept = start;
    for (let i = start; i < end; i++) {
      const row = rows[i]!;
      if (this.#ask(row, filter) !== answer.refused) rows[kept++] = row;
    }
    return kept;
  }

  #askCodes(
    rows: Uint32Array,
    start: number,
    end: number,
    filter: BoundFilter,
    { codes, dictionary }: DictionaryColumn,
    stream: StreamContext,
  ): number {
    const answers = answersOf(filter, dictionary, stream);
    let kept = start;
    for (let i = start; i < end; i++) {
      const row = rows[i]!;
      const code = codes[row]!;
      let is = answers[code]!;
      if (is === answer.unknown) {
        is = this.#ask(row, filter);
        answers[code] = is;
      }
      if (is === answer.refused) continue;
      if (is === answer.keptWithError) filter.hasFailed = true;
      rows[kept++] = row;
    }
    return kept;
  }

  #ask(row: number, filter: BoundFilter): number {
    const { labels } = this.#row;
    labels.beginRow(row);
    if (!filter.test()) return answer.refused;
    if (labels.error === "") return answer.kept;
    filter.hasFailed = true;
    return answer.keptWithError;
  }
}

/** What is known of the values of a dictionary: they stay from block to block where it stays. */
function answersOf(
  { known, slots }: BoundFilter,
  dictionary: BytesColumn,
  stream: StreamContext,
): Int8Array {
  // A filter of several names may look at a label of the stream, too.
  const isKnown = slots.length === 1 || known.stream === stream;
  if (known.dictionary === dictionary && isKnown) return known.answers;
  known.dictionary = dictionary;
  known.stream = stream;
  const values = dictionary.offsets.length - 1;
  if (known.answers.length < values) known.answers = new Int8Array(values);
  return known.answers.fill(answer.unknown);
}
