import {
  fieldColumns,
  fieldKind,
  kernelForm,
  maxFields,
  type RowSelection,
  scanJsonFields,
  scanLogfmtFields,
} from "@skald/kernels";
import type { BytesColumn } from "@skald/model";
import type { BlockRows, RowState, StageContext } from "../row-state.js";
import { type FieldSink, sinkSays } from "./field-sink.js";
import { demandsErrors, keyWants } from "./key-tree.js";

/** Selected rows are copied with what lies between them: below one row in so many the parser itself is faster. */
const sparsityMax = 8;

/** How a format finds fields in all rows of a block at once. */
export interface FieldFormat {
  readonly kind: "json" | "logfmt";
  /** A malformed line is an error of the row. */
  readonly fails: boolean;
  /** Logfmt: keys with an empty value or none count. */
  readonly keepEmpty: boolean;
}

/**
 * The search for the demanded fields in all selected rows of a block by one call of a kernel. Whatever the kernel does
 * not judge (malformed lines, odd keys), and rows that the parser would read further, are left to the parser.
 */
export class FieldScan {
  readonly #row: RowState;
  readonly #format: FieldFormat;
  readonly #names: readonly string[];
  readonly #slots: readonly number[];
  readonly #demandsErrors: boolean;
  #columns = fieldColumns(0, 0);
  #isOn = false;
  /** No line was left before its end. */
  #readsAll = false;
  /** Indexes of the fields of a row in order of their place. */
  readonly #order = new Uint8Array(maxFields);

  constructor(row: RowState, names: readonly string[], format: FieldFormat) {
    this.#row = row;
    this.#format = format;
    this.#names = names;
    this.#slots = names.map((name) => row.labels.names.slotOf(name));
    this.#demandsErrors = demandsErrors(new Set(names));
    row.beforeRows((rows) => this.#scan(rows));
  }

  /**
   * Hands the fields of the current row to the sink in the order of the line; answers what the sink says, or undefined
   * when the parser must read the line. `decode` hands over a value with escapes or bytes beyond ASCII.
   */
  handOver(
    sink: FieldSink,
    decode: (target: number, bytes: Uint8Array, start: number, end: number) => number,
  ): number | undefined {
    const at = this.#row.position;
    const { isRead, start, length, kind, capacity } = this.#columns;
    if (!this.#isOn || isRead[at] !== 1) return undefined;
    if (this.#format.fails && !this.#readsAll && sink.readsOn) return undefined;
    const { bytes } = this.#row.line;
    const order = this.#order;
    const found = this.#findFields(at);
    for (let i = 0; i < found; i++) {
      const field = order[i]!;
      const place = field * capacity + at;
      const target = sink.target(this.#slots[field]!, keyWants.plain);
      if (target < 0) continue;
      const from = start[place]!;
      const to = from + length[place]!;
      const isPlain = kind[place] === fieldKind.plain;
      const says = isPlain ? sink.put(target, bytes, from, to) : decode(target, bytes, from, to);
      if (says !== sinkSays.goOn) return says;
    }
    return sinkSays.goOn;
  }

  /** Sorts the fields of a row by their place in the line; answers how many there are. */
  #findFields(at: number): number {
    const { start, kind, capacity } = this.#columns;
    const order = this.#order;
    let count = 0;
    for (let field = 0, place = at; field < this.#slots.length; field++, place += capacity) {
      if (kind[place] === fieldKind.absent) continue;
      let i = count++;
      for (; i > 0 && start[order[i - 1]! * capacity + at]! > start[place]!; i--) {
        order[i] = order[i - 1]!;
      }
      order[i] = field;
    }
    return count;
  }

  #scan({ block, lines, selection, streamLabels }: BlockRows): void {
    const { rows, count } = selection;
    const span = count === 0 ? 0 : rows[count - 1]! - rows[0]! + 1;
    this.#isOn = count > 0 && span <= count * sparsityMax;
    if (!this.#isOn) return;
    if (this.#columns.capacity < count) {
      this.#columns = fieldColumns(this.#names.length, count);
    }
    const enough = this.#demandsErrors ? 0 : this.#missingFields(block, streamLabels);
    this.#readsAll = enough === 0;
    this.#run(lines, selection, enough);
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

  #run({ bytes, offsets }: BytesColumn, selection: Readonly<RowSelection>, enough: number): void {
    const { kind, fails, keepEmpty } = this.#format;
    const input = [bytes, offsets, selection, this.#names, this.#columns] as const;
    if (kind === "json") {
      scanJsonFields(...input, { complete: this.#demandsErrors, enough });
    } else {
      scanLogfmtFields(...input, { strict: fails, keepEmpty, lastWins: false, enough });
    }
  }
}

/**
 * A scan for the fields that are used behind a parser; undefined where it would be of no use: all fields are used, or
 * too many, or one that may come from a key of another name, or rows are not those of the block any more.
 */
export function fieldScan(
  row: RowState,
  { demand, isFirst }: StageContext,
  format: FieldFormat,
): FieldScan | undefined {
  if (kernelForm !== "wasm" || !isFirst || demand === "all") return undefined;
  const names = [...demand];
  if (names.length > maxFields || names.some((name) => name.endsWith("_extracted"))) {
    return undefined;
  }
  return new FieldScan(row, names, format);
}
