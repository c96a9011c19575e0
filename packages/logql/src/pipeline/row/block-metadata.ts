import type { Block, MetadataColumn } from "@skald/model";
import { encodeText, readText } from "./bytes.js";
import type { LabelSlots } from "./label-slots.js";
import { errorDetailsLabel, errorLabel } from "./labels.js";

/** One metadata column with its values as bytes. */
export interface MetadataValues {
  readonly name: string;
  readonly column: MetadataColumn;
  /** Encoded dictionary; empty for a bytes column. */
  readonly dictionary: readonly Uint8Array[];
  /** Slot that the values have in the current stream: another one when the stream has the name. */
  slot: number;
}

/** Where a value that was looked up is written down: a range of bytes. */
export interface FoundValue {
  foundBytes: Uint8Array;
  foundStart: number;
  foundEnd: number;
}

/** The metadata columns of a block that a pipeline looks at. */
export class BlockMetadata {
  readonly columns: readonly MetadataValues[];
  readonly hasErrors: boolean;
  readonly #slots: LabelSlots;
  readonly #errors = new Map<string, MetadataValues>();
  /** Column by slot in the current stream. */
  readonly #bySlot: (MetadataValues | undefined)[] = [];

  constructor(block: Block, wanted: true | readonly string[], slots: LabelSlots) {
    this.#slots = slots;
    const names = wanted === true ? block.metadataNames() : wanted;
    const columns: MetadataValues[] = [];
    for (const name of names) {
      const column = block.metadata(name);
      if (column === undefined) continue;
      const values: MetadataValues = {
        name,
        column,
        dictionary: column.kind === "dictionary" ? column.dictionary.map(encodeText) : [],
        slot: slots.slotOf(name),
      };
      if (name === errorLabel || name === errorDetailsLabel) this.#errors.set(name, values);
      else columns.push(values);
    }
    this.columns = columns;
    this.hasErrors = this.#errors.size > 0;
  }

  /** Gives each column the slot that it has beside the labels of the stream. */
  beginStream(stream: { isStreamLabel(slot: number): boolean }): void {
    for (const values of this.columns) this.#bySlot[values.slot] = undefined;
    for (const values of this.columns) {
      const plain = this.#slots.slotOf(values.name);
      values.slot = stream.isStreamLabel(plain) ? this.#slots.extractedSlotOf(plain) : plain;
      this.#bySlot[values.slot] = values;
    }
  }

  columnOf(slot: number): MetadataValues | undefined {
    return this.#bySlot[slot];
  }

  /** Puts the row's value of a slot into the found* fields; false when it has none. */
  find(slot: number, row: number, into: FoundValue): boolean {
    const values = this.#bySlot[slot];
    return values !== undefined && findValue(values, row, into);
  }

  textOf(name: string, row: number): string {
    const values = this.#errors.get(name);
    if (values === undefined) return "";
    const { column } = values;
    if (column.kind === "dictionary") return column.dictionary[column.codes[row]!] ?? "";
    return readText(column.bytes, column.offsets[row]!, column.offsets[row + 1]!);
  }
}

function findValue({ column, dictionary }: MetadataValues, row: number, into: FoundValue): boolean {
  if (column.kind === "dictionary") {
    const value = dictionary[column.codes[row]!];
    if (value === undefined || value.length === 0) return false;
    into.foundBytes = value;
    into.foundStart = 0;
    into.foundEnd = value.length;
    return true;
  }
  const start = column.offsets[row]!;
  const end = column.offsets[row + 1]!;
  if (start === end) return false;
  into.foundBytes = column.bytes;
  into.foundStart = start;
  into.foundEnd = end;
  return true;
}
