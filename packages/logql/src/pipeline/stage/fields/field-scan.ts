import {
  type FieldColumns,
  fieldColumns,
  fieldKind,
  kernelForm,
  maxFields,
  type RowSelection,
} from "@skald/kernels";
import type { BytesColumn } from "@skald/model";
import { errorDetailsLabel, errorLabel } from "../../row/labels.js";
import type { BlockRows, RowState, StageContext } from "../row-state.js";
import { type FieldSink, sinkSays } from "./field-sink.js";
import { demandsErrors, keyWants } from "./key-tree.js";

/** Selected rows are copied with what lies between them: below one row in so many the parser itself is faster. */
const sparsityMax = 8;

/** Finds fields in all selected rows of a block at once. */
export type FindFields = (
  lines: BytesColumn,
  selection: Readonly<RowSelection>,
  names: readonly string[],
  found: FieldColumns,
  options: { readonly complete: boolean; readonly enough: number },
) => void;

/** The fields of a block's selected rows, found by one call of a kernel. */
export class BlockFields {
  /** Fields of the row that `begin` was called for, in the order of the line; the first `count` count. */
  readonly order = new Uint8Array(maxFields);
  count = 0;
  columns = fieldColumns(0, 0);
  readonly #names: readonly string[];
  readonly #find: FindFields;
  #isOn = false;

  constructor(names: readonly string[], find: FindFields) {
    this.#names = names;
    this.#find = find;
  }

  /** Searches the selected rows, unless they are few among many. */
  search(
    lines: BytesColumn,
    selection: Readonly<RowSelection>,
    options: { readonly complete: boolean; readonly enough: number },
  ): void {
    const { rows, count } = selection;
    const span = count === 0 ? 0 : rows[count - 1]! - rows[0]! + 1;
    this.#isOn = count > 0 && span <= count * sparsityMax;
    if (!this.#isOn) return;
    if (this.columns.capacity < count) {
      this.columns = fieldColumns(this.#names.length, count);
    }
    this.#find(lines, selection, this.#names, this.columns, options);
  }

  /** Leaves the rows of a block to the parser. */
  skip(): void {
    this.#isOn = false;
  }

  /** Goes to a row by its place in the selection; false when a parser must read its line. */
  begin(at: number): boolean {
    const { isRead, start, kind, capacity } = this.columns;
    if (!this.#isOn || isRead[at] !== 1) return false;
    const { order } = this;
    let count = 0;
    for (let field = 0, place = at; field < this.#names.length; field++, place += capacity) {
      if (kind[place] === fieldKind.absent) continue;
      let i = count++;
      for (; i > 0 && start[order[i - 1]! * capacity + at]! > start[place]!; i--) {
        order[i] = order[i - 1]!;
      }
      order[i] = field;
    }
    this.count = count;
    return true;
  }
}

/** True when the fields of these names can be searched in whole blocks: by the first stage, and by the compiled form. */
export function canSearch(names: readonly string[], { isFirst }: StageContext): boolean {
  return isFirst && kernelForm === "wasm" && names.length > 0 && names.length <= maxFields;
}

/** How a parser is spared its work. */
interface FieldFormat {
  /** A malformed line is an error of the row. */
  readonly fails: boolean;
  readonly find: FindFields;
}

/**
 * The search for the fields that are used behind a parser, or where all are, for those that filters behind it ask, in
 * all selected rows of a block at once. Lines of which the kernel says nothing (malformed ones, odd keys) and rows that
 * the parser would read further are left to the parser.
 */
export class FieldScan {
  readonly #row: RowState;
  readonly #fails: boolean;
  readonly #names: readonly string[];
  readonly #slots: readonly number[];
  readonly #fields: BlockFields;
  /** The fields are all that the parser would find. */
  readonly #isWhole: boolean;
  readonly #demandsErrors: boolean;
  /** No line was left before its end. */
  #readsAll = false;

  constructor(
    row: RowState,
    names: readonly string[],
    { demand }: StageContext,
    { fails, find }: FieldFormat,
  ) {
    this.#row = row;
    this.#fails = fails;
    this.#names = names;
    this.#slots = names.map((name) => row.labels.names.slotOf(name));
    this.#fields = new BlockFields(names, find);
    this.#isWhole = demand !== "all";
    this.#demandsErrors = demandsErrors(demand);
    row.beforeRows((rows) => this.#search(rows));
  }

  /**
   * Hands the fields of the current row to the sink in the order of the line; answers what the sink says, or undefined
   * when the parser must read the line. `decode` hands over a value with escapes or bytes beyond ASCII.
   */
  handOver(
    sink: FieldSink,
    decode: (target: number, bytes: Uint8Array, start: number, end: number) => number,
  ): number | undefined {
    const fields = this.#fields;
    const at = this.#row.position;
    if (!fields.begin(at)) return undefined;
    if (this.#isWhole && this.#fails && !this.#readsAll && sink.readsOn) return undefined;
    const { bytes } = this.#row.line;
    const { order, count, columns } = fields;
    const { start, length, kind, capacity } = columns;
    for (let i = 0; i < count; i++) {
      const field = order[i]!;
      const target = sink.target(this.#slots[field]!, keyWants.plain);
      if (target < 0) continue;
      const place = field * capacity + at;
      const from = start[place]!;
      const to = from + length[place]!;
      const isPlain = kind[place] === fieldKind.plain;
      const says = isPlain ? sink.put(target, bytes, from, to) : decode(target, bytes, from, to);
      if (says !== sinkSays.goOn) return says;
    }
    return this.#isWhole ? sinkSays.goOn : undefined;
  }

  #search({ block, lines, selection, streamLabels }: BlockRows): void {
    const readsAll = this.#isWhole && this.#demandsErrors;
    const enough = readsAll ? 0 : this.#missingFields(block, streamLabels);
    if (enough === 0 && !this.#isWhole) {
      this.#fields.skip();
      return;
    }
    this.#readsAll = enough === 0;
    this.#fields.search(lines, selection, { complete: this.#demandsErrors, enough });
  }

  /** Bits of the fields that some row of the block may lack, so that its parser looks for them. */
  #missingFields(block: BlockRows["block"], streamLabels: BlockRows["streamLabels"]): number {
    const { count, stream } = block.runs;
    let bits = 0;
    for (const [field, name] of this.#names.entries()) {
      if (this.#hasMetadata(name)) continue;
      let run = 0;
      while (run < count && streamLabels(stream[run]!).names.includes(name)) run++;
      if (run < count) bits |= 1 << field;
    }
    return bits;
  }

  /** True when every row of the block has structured metadata of the name. */
  #hasMetadata(name: string): boolean {
    const values = this.#row.labels.metadata?.columns.find((column) => column.name === name);
    if (values?.column.kind !== "dictionary") return false;
    return values.dictionary.every(({ length }) => length > 0);
  }
}

/** A scan for a parser; undefined where it would be of no use. */
export function fieldScan(
  row: RowState,
  context: StageContext,
  format: FieldFormat,
): FieldScan | undefined {
  const names = context.demand === "all" ? guardNames(context) : [...context.demand];
  if (!canSearch(names, context) || names.some(isExtracted)) return undefined;
  return new FieldScan(row, names, context, format);
}

/** Fields that decide whether a row is dropped. */
function guardNames({ guard }: StageContext): readonly string[] {
  const errors = [errorLabel, errorDetailsLabel];
  return [...guard.keys()].filter((name) => !errors.includes(name) && !isExtracted(name));
}

/** Such a name may stand for a key of another name. */
function isExtracted(name: string): boolean {
  return name.endsWith("_extracted");
}
