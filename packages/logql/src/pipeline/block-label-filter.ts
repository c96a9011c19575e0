import { type RowSelection, selectContains } from "@skald/kernels";
import type { Block, Labels } from "@skald/model";
import type { LabelPrefilter } from "./compiled.js";
import type { MetadataValues } from "./row/block-metadata.js";
import type { RowStage, RowState } from "./stage/row-state.js";

interface BoundFilter {
  readonly test: RowStage;
  readonly slots: readonly number[];
  readonly equals: Uint8Array | undefined;
}

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
    this.#filters = filters.map(({ prepare, names, equals }) => ({
      test: prepare(row),
      slots: names.map((name) => row.labels.names.slotOf(name)),
      equals,
    }));
  }

  /** Narrows the selection in place. */
  apply(block: Block, streamLabels: (stream: number) => Labels, selection: RowSelection): void {
    const { runs } = block;
    const { rows } = selection;
    let kept = 0;
    let at = 0;
    for (let run = 0; run < runs.count && at < selection.count; run++) {
      const runEnd = runs.rowStart[run + 1]!;
      if (rows[at]! >= runEnd) continue;
      const from = at;
      while (at < selection.count && rows[at]! < runEnd) at++;
      this.#row.labels.beginStream(streamLabels(runs.stream[run]!));
      kept = this.#narrowRun(rows, from, at, kept);
    }
    selection.count = kept;
  }

  /** Moves the rows of a run that pass to `kept` and behind. */
  #narrowRun(rows: Uint32Array, from: number, to: number, kept: number): number {
    const start = kept;
    rows.copyWithin(kept, from, to);
    let end = kept + to - from;
    for (const filter of this.#filters) {
      const columns = this.#columnsOf(filter.slots);
      end = this.#search(rows, start, end, filter, columns);
      end = this.#narrow(rows, start, end, filter.test, columns);
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

  #narrow(
    rows: Uint32Array,
    start: number,
    end: number,
    test: RowStage,
    columns: readonly MetadataValues[],
  ): number {
    if (start === end) return end;
    const { labels } = this.#row;
    const [only] = columns;
    if (only === undefined) {
      labels.beginRow(rows[start]!);
      return test() ? end : start;
    }
    const codes =
      columns.length === 1 && only.column.kind === "dictionary" ? only.column.codes : undefined;
    const answers = codes && new Int8Array(256).fill(-1);
    let kept = start;
    for (let i = start; i < end; i++) {
      const row = rows[i]!;
      let answer = answers === undefined || codes === undefined ? -1 : answers[codes[row]!]!;
      if (answer < 0) {
        labels.beginRow(row);
        answer = test() ? 1 : 0;
        if (answers !== undefined && codes !== undefined) answers[codes[row]!] = answer;
      }
      if (answer === 1) rows[kept++] = row;
    }
    return kept;
  }
}
