import {
  type ContainsOptions,
  type RowSelection,
  selectContains,
  selectContainsAny,
} from "@skald/kernels";
import type { BytesColumn } from "@skald/model";
import { LineSource } from "./row/line.js";
import type { LineFilter, LineNeedles } from "./stage/line-filter.js";

/** So few texts are searched one after the other: a search for one is as much faster. */
const fewTexts = 4;

/** Applies line filters to whole blocks: texts are searched in all lines at once, regexes run on what is left. */
export class BlockLineFilter {
  readonly #filters: readonly LineFilter[];
  readonly #line = new LineSource();
  #scratch = new Uint32Array(0);

  /** Filters that search for a text only come first: they are cheap. */
  constructor(filters: readonly LineFilter[]) {
    const isCheap = ({ needles }: LineFilter) => needles?.complete === true;
    this.#filters = [...filters.filter(isCheap), ...filters.filter((f) => !isCheap(f))];
  }

  /** Narrows the selection in place. */
  apply(lines: BytesColumn, rowCount: number, selection: RowSelection): void {
    for (const filter of this.#filters) {
      if (selection.count === 0) return;
      if (filter.needles?.complete) {
        selectTexts(filter.needles, lines, rowCount, selection, filter.negated);
      } else if (filter.negated) this.#refuse(filter, lines, rowCount, selection);
      else this.#accept(filter, lines, rowCount, selection);
    }
  }

  /** Keeps the rows that match. */
  #accept(
    { needles, matches }: LineFilter,
    lines: BytesColumn,
    rowCount: number,
    selection: RowSelection,
  ): void {
    if (needles !== undefined) selectTexts(needles, lines, rowCount, selection, false);
    const line = this.#line;
    const { rows } = selection;
    let kept = 0;
    for (let i = 0; i < selection.count; i++) {
      const row = rows[i]!;
      line.setRow(lines, row);
      if (matches(line)) rows[kept++] = row;
    }
    selection.count = kept;
  }

  /** Keeps the rows that do not match. */
  #refuse(filter: LineFilter, lines: BytesColumn, rowCount: number, selection: RowSelection): void {
    if (this.#scratch.length < rowCount) this.#scratch = new Uint32Array(rowCount);
    const matching = { rows: this.#scratch, count: selection.count };
    matching.rows.set(selection.rows.subarray(0, selection.count));
    this.#accept(filter, lines, rowCount, matching);
    const { rows } = selection;
    let next = 0;
    let kept = 0;
    for (let i = 0; i < selection.count; i++) {
      const row = rows[i]!;
      if (next < matching.count && matching.rows[next] === row) next++;
      else rows[kept++] = row;
    }
    selection.count = kept;
  }
}

/** Keeps the rows that contain one of the texts. */
export function selectAnyText(
  values: readonly Uint8Array[],
  { bytes, offsets }: BytesColumn,
  rowCount: number,
  selection: RowSelection,
  options: ContainsOptions = plain,
): void {
  const found = new Uint8Array(rowCount);
  for (const value of values) {
    const matching = { rows: selection.rows.slice(0, selection.count), count: selection.count };
    selectContains(bytes, offsets, rowCount, value, matching, { ...options, negate: false });
    for (let i = 0; i < matching.count; i++) found[matching.rows[i]!] = 1;
  }
  const { rows } = selection;
  const wanted = options.negate ? 0 : 1;
  let kept = 0;
  for (let i = 0; i < selection.count; i++) {
    const row = rows[i]!;
    if (found[row] === wanted) rows[kept++] = row;
  }
  selection.count = kept;
}

const plain = { ignoreCase: false, negate: false };

function selectTexts(
  { values, texts, ignoreCase }: LineNeedles,
  lines: BytesColumn,
  rowCount: number,
  selection: RowSelection,
  negate: boolean,
): void {
  const options = { ignoreCase, negate };
  const { bytes, offsets } = lines;
  if (texts === undefined) {
    selectContains(bytes, offsets, rowCount, values[0]!, selection, options);
  } else if (values.length <= fewTexts) {
    selectAnyText(values, lines, rowCount, selection, options);
  } else {
    selectContainsAny(bytes, offsets, rowCount, texts, selection, negate);
  }
}
