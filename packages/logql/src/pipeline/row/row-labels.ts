import { grown } from "@skald/kernels";
import type { Block, Labels, MetadataColumn } from "@skald/model";
import { Arena, encodeText, readText } from "./bytes.js";

/** What a stage did to a label of the row; the greater of two origins wins. */
export const labelState = {
  untouched: 0,
  deleted: 1,
  stream: 2,
  metadata: 3,
  parsed: 4,
} as const;

const streamsMax = 100_000;

/**
 * The labels of the current row. A label that no stage touched is looked up in the metadata columns and the stream;
 * touched ones are ranges of bytes in arrays by slot, which `beginRow` forgets. Nothing is allocated per row.
 */
export class CurrentLabels implements FoundValue {
  readonly names: LabelSlots;
  readonly arena = new Arena();
  error = "";
  errorDetails = "";
  /** Touched slots in order of their first touch. */
  touched = new Int32Array(64);
  touchedCount = 0;
  state = new Uint8Array(64);
  start = new Uint32Array(64);
  end = new Uint32Array(64);
  readonly bytes: Uint8Array[] = [];
  /** Set by the last `find`. */
  foundBytes: Uint8Array = new Uint8Array(0);
  foundStart = 0;
  foundEnd = 0;
  metadata: BlockMetadata | undefined;
  #row = 0;
  /** Found by a parser in this row. */
  #extracted = new Uint8Array(64);
  /** Value of each label of the current stream by slot. */
  readonly #stream: (Uint8Array | undefined)[] = [];
  #context: StreamContext | undefined;
  /** The metadata that the current stream was begun with. */
  #streamMetadata: BlockMetadata | undefined;
  readonly #contexts = new Map<Labels, StreamContext>();
  #lastId = -1;

  constructor(names: LabelSlots) {
    this.names = names;
  }

  /** Call when a run of rows of one stream begins; gives the number of the stream within the scan. */
  beginStream(labels: Labels): StreamContext {
    const last = this.#context;
    if (last?.labels === labels && this.metadata === this.#streamMetadata) return last;
    this.#streamMetadata = this.metadata;
    for (const slot of this.streamSlots) this.#stream[slot] = undefined;
    const context = this.#contextOf(labels);
    for (let i = 0; i < context.slots.length; i++) {
      this.#stream[context.slots[i]!] = context.values[i]!;
    }
    this.#context = context;
    this.metadata?.beginStream(this);
    return context;
  }

  beginRow(row: number): void {
    for (let i = 0; i < this.touchedCount; i++) {
      const slot = this.touched[i]!;
      this.state[slot] = 0;
      this.#extracted[slot] = 0;
    }
    this.touchedCount = 0;
    this.arena.used = 0;
    this.error = "";
    this.errorDetails = "";
    this.#row = row;
    const { metadata } = this;
    if (metadata?.hasErrors) {
      this.error = metadata.textOf(errorLabel, row);
      this.errorDetails = metadata.textOf(errorDetailsLabel, row);
    }
  }

  /** Slots of the labels of the current stream. */
  get streamSlots(): readonly number[] {
    return this.#context?.slots ?? [];
  }

  isStreamLabel(slot: number): boolean {
    return this.#stream[slot] !== undefined;
  }

  /** True when the row's own metadata has the name, and no stage took the label away or replaced it. */
  isMetadata(slot: number): boolean {
    if ((this.state[slot] ?? labelState.untouched) !== labelState.untouched) return false;
    return this.metadata?.find(slot, this.#row, this) === true;
  }

  /** Looks a label up; the value is in the found* fields. */
  find(slot: number): boolean {
    const state = this.state[slot];
    if (state !== undefined && state !== labelState.untouched) {
      if (state === labelState.deleted) return false;
      this.foundBytes = this.bytes[slot]!;
      this.foundStart = this.start[slot]!;
      this.foundEnd = this.end[slot]!;
      return true;
    }
    if (this.metadata?.find(slot, this.#row, this)) return true;
    const value = this.#stream[slot];
    if (value === undefined) return false;
    this.foundBytes = value;
    this.foundStart = 0;
    this.foundEnd = value.length;
    return true;
  }

  /** Text of a label; undefined when the row has none of the name. */
  text(slot: number): string | undefined {
    if (!this.find(slot)) return undefined;
    return readText(this.foundBytes, this.foundStart, this.foundEnd);
  }

  /** Origin of a label that `find` finds. */
  #originOf(slot: number): number {
    const state = this.state[slot] ?? 0;
    if (state !== labelState.untouched) return state;
    return this.isMetadata(slot) ? labelState.metadata : labelState.stream;
  }

  /** Sets a value; a weaker origin does not replace a stronger one. */
  set(origin: number, slot: number, bytes: Uint8Array, start: number, end: number): void {
    if (origin !== labelState.parsed && this.find(slot)) {
      const known = this.#originOf(slot);
      const isBase = known === labelState.stream;
      if (!isBase && known > origin) return;
    }
    this.#touch(slot);
    this.state[slot] = origin;
    this.bytes[slot] = bytes;
    this.start[slot] = start;
    this.end[slot] = end;
  }

  setText(origin: number, slot: number, text: string): void {
    const start = this.arena.append(text);
    this.set(origin, slot, this.arena.bytes, start, this.arena.used);
  }

  delete(slot: number): void {
    this.#touch(slot);
    this.state[slot] = labelState.deleted;
  }

  /** The slot that a parsed value of this name goes to: another one when stream or metadata have the name. */
  parsedSlot(slot: number): number {
    const isTaken = this.#stream[slot] !== undefined || this.isMetadata(slot);
    return isTaken ? this.names.extractedSlotOf(slot) : slot;
  }

  isExtracted(slot: number): boolean {
    return this.#extracted[slot] === 1;
  }

  /** Sets the value that a parser found for a slot of `parsedSlot`. */
  extract(slot: number, bytes: Uint8Array, start: number, end: number): void {
    this.#touch(slot);
    this.#extracted[slot] = 1;
    this.state[slot] = labelState.parsed;
    this.bytes[slot] = bytes;
    this.start[slot] = start;
    this.end[slot] = end;
  }

  fail(kind: string, details?: string): void {
    this.error = kind;
    if (details !== undefined) this.errorDetails = details;
  }

  get row(): number {
    return this.#row;
  }

  #touch(slot: number): void {
    if (slot >= this.state.length) this.#grow();
    if (this.state[slot] !== labelState.untouched) return;
    if (this.touchedCount === this.touched.length)
      this.touched = grown(this.touched, this.touched.length * 2);
    this.touched[this.touchedCount++] = slot;
  }

  #grow(): void {
    const size = Math.max(this.names.count, this.state.length * 2);
    this.state = grown(this.state, size);
    this.#extracted = grown(this.#extracted, size);
    this.start = grown(this.start, size);
    this.end = grown(this.end, size);
  }

  #contextOf(labels: Labels): StreamContext {
    const known = this.#contexts.get(labels);
    if (known !== undefined) return known;
    if (this.#contexts.size >= streamsMax) this.#contexts.clear();
    const context: StreamContext = {
      labels,
      slots: labels.names.map((name) => this.names.slotOf(name)),
      values: labels.values.map(encodeText),
      id: this.#lastId + 1,
      seriesId: -1,
    };
    this.#lastId = context.id;
    this.#contexts.set(labels, context);
    return context;
  }
}

/** What is known of a stream for the whole scan. */
export interface StreamContext {
  readonly labels: Labels;
  readonly slots: readonly number[];
  readonly values: readonly Uint8Array[];
  /** Number of the stream within the run. */
  readonly id: number;
  /** Series of the rows that have just the labels of the stream; -1 when not known yet. */
  seriesId: number;
}

/** One metadata column with its values as bytes. */
export interface MetadataValues {
  readonly name: string;
  readonly column: MetadataColumn;
  /** Slot that the values have in the current stream: another one when the stream has the name. */
  slot: number;
}

/** Where a value that was looked up is written down: a range of bytes. */
interface FoundValue {
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
      const values: MetadataValues = { name, column, slot: slots.slotOf(name) };
      if (isErrorLabel(name)) this.#errors.set(name, values);
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
    const found = { foundBytes: new Uint8Array(0), foundStart: 0, foundEnd: 0 };
    return findValue(values, row, found)
      ? readText(found.foundBytes, found.foundStart, found.foundEnd)
      : "";
  }
}

function findValue({ column }: MetadataValues, row: number, into: FoundValue): boolean {
  const isCoded = column.kind === "dictionary";
  const at = isCoded ? column.codes[row]! : row;
  const { bytes, offsets } = isCoded ? column.dictionary : column;
  const start = offsets[at]!;
  const end = offsets[at + 1]!;
  if (start === end) return false;
  into.foundBytes = bytes;
  into.foundStart = start;
  into.foundEnd = end;
  return true;
}

/** The label names of one run as small numbers (slots), so that a row can keep its labels in arrays. */
export class LabelSlots {
  readonly #slots = new Map<string, number>();
  readonly #names: string[] = [];
  /** Slot of `<name>_extracted`, or -1 when not asked for yet. */
  readonly #extracted: number[] = [];

  get count(): number {
    return this.#names.length;
  }

  slotOf(name: string): number {
    const known = this.#slots.get(name);
    if (known !== undefined) return known;
    const slot = this.#names.push(name) - 1;
    this.#slots.set(name, slot);
    this.#extracted.push(-1);
    return slot;
  }

  nameOf(slot: number): string {
    return this.#names[slot]!;
  }

  extractedSlotOf(slot: number): number {
    const known = this.#extracted[slot]!;
    if (known >= 0) return known;
    const extracted = this.slotOf(extractedName(this.nameOf(slot)));
    this.#extracted[slot] = extracted;
    return extracted;
  }
}

export const errorLabel = "__error__";
export const errorDetailsLabel = "__error_details__";
/** True for the two labels that hold the error state of a row. */
export function isErrorLabel(name: string): boolean {
  return name === errorLabel || name === errorDetailsLabel;
}

/** What is behind the name of a parsed label whose own name a stream label or structured metadata has. */
export const extractedSuffix = "_extracted";
export const preserveErrorLabel = "__preserve_error__";

/** Kinds of errors that stages set in `__error__`. */
export const stageErrors = {
  json: "JSONParserErr",
  logfmt: "LogfmtParserErr",
  labelFilter: "LabelFilterErr",
  template: "TemplateFormatErr",
  unwrap: "SampleExtractionErr",
} as const;

/** True for the errors of parsers: a metric query that groups by `__error__` shows them, any other error fails it. */
export function isParserError(kind: string): boolean {
  return kind === stageErrors.json || kind === stageErrors.logfmt;
}

/**
 * The label name that a parser makes of a key: outer blanks go, any character outside `[A-Za-z0-9_]` becomes `_`,
 * and a digit cannot come first (unless the key is nested and gets a prefix). May be empty: then it is no label.
 */
export function sanitizeLabelName(key: string, nested = false): string {
  if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(key)) return key;
  const name = key.trim().replace(/[^A-Za-z0-9_]/gu, "_");
  return !nested && /^[0-9]/.test(name) ? `_${name}` : name;
}

/** The name that a parsed label gets when its own is taken by a stream label or structured metadata. */
export function extractedName(name: string): string {
  return name + extractedSuffix;
}
