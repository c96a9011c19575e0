import { type ContainsOptions, type RowSelection, selectContains } from "@skald/kernels";
import type { BytesColumn } from "@skald/model";
import { LineSource } from "./row/line.js";
import type { LineFilter, LineNeedles, LineTest } from "./stage/line-filter.js";

/** Applies line filters to whole blocks: texts are searched in all lines at once, regexes run on what is left. */
export class BlockLineFilter {
  readonly #filters: readonly LineFilter[];
  readonly #line = new LineSource();
  #marks = new Uint8Array(0);
  #scratch: RowSelection = { rows: new Uint32Array(0), count: 0 };

  /** Filters that search for a text only come first: they are cheap. */
  constructor(filters: readonly LineFilter[]) {
    const isCheap = ({ tests }: LineFilter) => tests.every(({ needles }) => needles?.complete);
    this.#filters = [...filters.filter(isCheap), ...filters.filter((f) => !isCheap(f))];
  }

  /** Narrows the selection in place. */
  apply(lines: BytesColumn, rowCount: number, selection: RowSelection): void {
    if (this.#marks.length < rowCount) {
      this.#marks = new Uint8Array(rowCount);
      this.#scratch = { rows: new Uint32Array(rowCount), count: 0 };
    }
    for (const { negated, tests } of this.#filters) {
      if (selection.count === 0) return;
      const [only] = tests;
      if (negated) for (const test of tests) this.#refuse(test, lines, rowCount, selection);
      else if (tests.length === 1) this.#accept(only as LineTest, lines, rowCount, selection);
      else this.#acceptAny(tests, lines, rowCount, selection);
    }
  }

  /** Keeps the rows that contain one of the texts. */
  containAny(
    anyOf: readonly Uint8Array[],
    lines: BytesColumn,
    rowCount: number,
    selection: RowSelection,
  ): void {
    this.#contain({ values: anyOf, ignoreCase: false, complete: true }, lines, rowCount, selection);
  }

  /** Keeps the rows that match. */
  #accept(test: LineTest, lines: BytesColumn, rowCount: number, selection: RowSelection): void {
    const { needles } = test;
    if (needles !== undefined) this.#contain(needles, lines, rowCount, selection);
    if (needles?.complete !== true) this.#run(test, lines, selection);
  }

  /** Keeps the rows that do not match. */
  #refuse(test: LineTest, lines: BytesColumn, rowCount: number, selection: RowSelection): void {
    const { needles } = test;
    if (needles?.complete) {
      const options = { ignoreCase: needles.ignoreCase, negate: true };
      for (const value of needles.values) contain(lines, rowCount, value, selection, options);
      return;
    }
    const matching = this.#copy(selection);
    this.#accept(test, lines, rowCount, matching);
    this.#markRows(matching, 1);
    narrow(selection, (row) => this.#marks[row] === 0);
    this.#markRows(matching, 0);
  }

  #acceptAny(
    tests: readonly LineTest[],
    lines: BytesColumn,
    rowCount: number,
    selection: RowSelection,
  ): void {
    const all: RowSelection = {
      rows: selection.rows.slice(0, selection.count),
      count: selection.count,
    };
    for (const test of tests) {
      const matching = { rows: all.rows.slice(), count: all.count };
      this.#accept(test, lines, rowCount, matching);
      this.#markRows(matching, 1);
    }
    narrow(selection, (row) => this.#marks[row] === 1);
    this.#markRows(all, 0);
  }

  /** Keeps the rows that contain one of the texts. */
  #contain(
    { values, ignoreCase }: LineNeedles,
    lines: BytesColumn,
    rowCount: number,
    selection: RowSelection,
  ): void {
    const options = { ignoreCase, negate: false };
    if (values.length === 1) {
      contain(lines, rowCount, values[0]!, selection, options);
      return;
    }
    const found = new Uint8Array(rowCount);
    for (const value of values) {
      const matching = { rows: selection.rows.slice(0, selection.count), count: selection.count };
      contain(lines, rowCount, value, matching, options);
      for (let i = 0; i < matching.count; i++) found[matching.rows[i]!] = 1;
    }
    narrow(selection, (row) => found[row] === 1);
  }

  #run({ test }: LineTest, lines: BytesColumn, selection: RowSelection): void {
    const line = this.#line;
    narrow(selection, (row) => {
      line.setRow(lines, row);
      return test(line);
    });
  }

  #copy(selection: RowSelection): RowSelection {
    const { rows } = this.#scratch;
    rows.set(selection.rows.subarray(0, selection.count));
    return { rows, count: selection.count };
  }

  #markRows({ rows, count }: RowSelection, mark: number): void {
    for (let i = 0; i < count; i++) this.#marks[rows[i]!] = mark;
  }
}

function contain(
  { bytes, offsets }: BytesColumn,
  rowCount: number,
  value: Uint8Array,
  selection: RowSelection,
  options: ContainsOptions,
): void {
  selectContains(bytes, offsets, rowCount, value, selection, options);
}

function narrow(selection: RowSelection, keep: (row: number) => boolean): void {
  const { rows } = selection;
  let kept = 0;
  for (let i = 0; i < selection.count; i++) {
    const row = rows[i]!;
    if (keep(row)) rows[kept++] = row;
  }
  selection.count = kept;
}
