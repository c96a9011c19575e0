import {
  type FieldColumns,
  fieldColumns,
  fieldKind,
  grown,
  kernelForm,
  maxFields,
  type RowSelection,
} from "@skald/kernels";
import { type BytesColumn, fnv1aBytes } from "@skald/model";
import type { LabelFilter, Stage } from "../../syntax/ast.js";
import { bytesEqual, readText } from "../row/bytes.js";
import { HashIndex } from "../row/key-table.js";
import type {
  BlockRows,
  Demand,
  ParserGuard,
  RowStage,
  RowState,
  StageContext,
} from "../row/row.js";
import {
  type CurrentLabels,
  errorDetailsLabel,
  errorLabel,
  extractedName,
  extractedSuffix,
  isErrorLabel,
  type LabelSlots,
  type MetadataValues,
  sanitizeLabelName,
} from "../row/row-labels.js";
import { compileLabelFilter } from "./label-filter.js";

/** What to do after a value was handed over. */
export const sinkSays = { goOn: 0, drop: 1, done: 2 } as const;

/**
 * Takes the fields that a parser finds in a row: gives them their names, keeps the first of each, asks the guard,
 * and reports when every wanted field is there.
 */
export class FieldSink {
  readonly #labels: CurrentLabels;
  readonly #guards: (RowStage | undefined)[] = [];
  readonly #demanded: readonly number[] | undefined;
  readonly #demandsError: boolean;
  readonly #fails: boolean;
  #remaining = Number.POSITIVE_INFINITY;

  /** `fails`: a malformed line is an error of the row. */
  constructor(row: RowState, { demand, guard }: StageContext, fails: boolean) {
    this.#labels = row.labels;
    const { names } = row.labels;
    for (const [name, filter] of guard) {
      this.#guards[names.slotOf(name)] = compileLabelFilter(filter)(row);
    }
    this.#demanded = demand === "all" ? undefined : [...demand].map((name) => names.slotOf(name));
    this.#demandsError = demandsErrors(demand);
    this.#fails = fails;
  }

  /** False when nothing is wanted of this row. */
  beginRow(): boolean {
    const demanded = this.#demanded;
    if (demanded === undefined) return true;
    const labels = this.#labels;
    let missing = 0;
    let producible = 0;
    for (const slot of demanded) {
      if (labels.isExtracted(slot)) continue;
      missing++;
      if (!labels.isStreamLabel(slot) && !labels.isMetadata(slot)) producible++;
    }
    // A line is read to its end where its errors count and a name is wanted that the parser cannot give.
    const readsOn = this.#demandsError || producible === 0 || (this.#fails && producible < missing);
    this.#remaining = readsOn ? Number.POSITIVE_INFINITY : producible;
    return missing > 0 || (this.#fails && demanded.length === 0);
  }

  /** True when the line of the row is read to its end in any case. */
  get readsOn(): boolean {
    return this.#remaining === Number.POSITIVE_INFINITY;
  }

  /** The slot that a value of a key goes to, or -1 when it is not wanted or already there. */
  target(slot: number, wants: number): number {
    const target = this.#labels.parsedSlot(slot);
    if ((wants & (target === slot ? keyWants.plain : keyWants.extracted)) === 0) return -1;
    return this.#labels.isExtracted(target) ? -1 : target;
  }

  /** Hands over a value for a slot of `target`. */
  put(target: number, bytes: Uint8Array, start: number, end: number): number {
    this.#labels.extract(target, bytes, start, end);
    const guard = this.#guards[target];
    if (guard !== undefined && !guard()) return sinkSays.drop;
    return --this.#remaining === 0 ? sinkSays.done : sinkSays.goOn;
  }
}

/** True when a later stage or the output uses the label. */
export function isWanted(demand: StageContext["demand"], label: string): boolean {
  return demand === "all" || demand.has(label) || demand.has(extractedName(label));
}

/**
 * `json` and `logfmt` drop a row at once when a value they find fails a later filter on that label alone. Clients can
 * see it: the filter is asked before a label_format between the two changes the value.
 */
export function parserGuard(stages: readonly Stage[], parser: number): ParserGuard {
  const guard = new Map<string, LabelFilter>();
  for (const stage of stages.slice(parser + 1)) {
    if (stage.kind !== "label_filter") continue;
    const { filter } = stage;
    if (filter.kind === "and" || filter.kind === "or") continue;
    const name = filter.kind === "string" ? filter.matcher.name : filter.name;
    if (!guard.has(name)) guard.set(name, filter);
  }
  return guard;
}

const nodesMax = 65_536;

/** Bits of `wants`. */
export const keyWants = {
  /** The value, when it keeps its name. */
  plain: 1,
  /** The value, when its name is taken and it becomes `<name>_extracted`. */
  extracted: 2,
  /** Members of the value. */
  members: 4,
} as const;

/**
 * Keys of parsed lines, nested ones below their parents, and what each means: learnt once, then found by bytes. Keys
 * come in much the same order in line after line, so the key that followed last time is tried first.
 */
export class KeyTree {
  /** Slot of the label, or -1; by node. */
  slot: Int32Array = new Int32Array(256);
  wants: Uint8Array = new Uint8Array(256);
  readonly #names: LabelSlots;
  readonly #demand: Demand;
  readonly #labels: string[] = [];
  readonly #keys: Uint8Array[] = [];
  readonly #parent: number[] = [];
  readonly #follower: number[] = [];
  /** All nodes but the root: entry e is node e + 1. */
  #index = new HashIndex();
  #previous = 0;

  constructor(names: LabelSlots, demand: Demand) {
    this.#names = names;
    this.#demand = demand;
    this.#add(-1, "", new Uint8Array(0));
  }

  /** Call before the first key of a line. */
  beginLine(): void {
    this.#previous = 0;
    if (this.#keys.length > nodesMax) this.#forget();
  }

  /** The node of a key (raw bytes without escapes) below a parent; the root is 0. */
  child(parent: number, bytes: Uint8Array, start: number, end: number): number {
    const guess = this.#follower[this.#previous]!;
    if (
      guess > 0 &&
      this.#parent[guess] === parent &&
      bytesEqual(bytes, start, end, this.#keys[guess]!)
    ) {
      this.#previous = guess;
      return guess;
    }
    const node = this.#lookup(parent, bytes, start, end);
    this.#follower[this.#previous] = node;
    this.#previous = node;
    return node;
  }

  #lookup(parent: number, bytes: Uint8Array, start: number, end: number): number {
    const hash = fnv1aBytes(bytes, start, end, Math.imul(parent + 1, 0x9e3779b1));
    let node = this.#index.first(hash ^ (hash >>> 15)) + 1;
    while (node > 0) {
      if (this.#parent[node] === parent && bytesEqual(bytes, start, end, this.#keys[node]!))
        return node;
      node = this.#index.next() + 1;
    }
    this.#index.add();
    const key = bytes.slice(start, end);
    return this.#add(parent, readText(key, 0, key.length), key);
  }

  #add(parent: number, key: string, bytes: Uint8Array): number {
    const node = this.#keys.push(bytes) - 1;
    this.#parent.push(parent);
    this.#follower.push(0);
    if (node >= this.slot.length) this.#grow();
    const prefix = parent <= 0 ? "" : this.#labels[parent]!;
    const label =
      parent < 0
        ? ""
        : prefix === ""
          ? sanitizeLabelName(key)
          : `${prefix}_${sanitizeLabelName(key, true)}`;
    this.#labels.push(label);
    const wants = this.#wantsOf(label);
    this.wants[node] = wants;
    const isLabel = label !== "" && (wants & (keyWants.plain | keyWants.extracted)) !== 0;
    this.slot[node] = isLabel ? this.#names.slotOf(label) : -1;
    return node;
  }

  #wantsOf(label: string): number {
    const demand = this.#demand;
    if (demand === "all") return keyWants.plain | keyWants.extracted | keyWants.members;
    // A fault anywhere in the line counts where errors are asked for.
    let wants = demandsErrors(demand) ? keyWants.members : 0;
    if (demand.has(label)) wants |= keyWants.plain;
    if (demand.has(extractedName(label))) wants |= keyWants.extracted;
    for (const name of demand) {
      if (label === "" || name.startsWith(`${label}_`)) wants |= keyWants.members;
    }
    return wants;
  }

  #grow(): void {
    const length = this.slot.length * 2;
    this.slot = grown(this.slot, length);
    this.wants = grown(this.wants, length);
  }

  /** Lines with ever new keys must not fill the memory. */
  #forget(): void {
    this.#keys.length = 1;
    this.#parent.length = 1;
    this.#labels.length = 1;
    this.#follower.length = 1;
    this.#follower[0] = 0;
    this.#index = new HashIndex();
  }
}

/** True when errors of the stage are looked at later. */
export function demandsErrors(demand: Demand): boolean {
  return demand === "all" || demand.has(errorLabel) || demand.has(errorDetailsLabel);
}

/** Selected rows are copied with the rows between them. Below one selected row in this many the parser is faster. */
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
 * all selected rows of a block at once. The parser reads the lines that the kernel leaves out
 * (malformed ones, odd keys), and the rows that it would read further.
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

  /**
   * Bits of the fields that some row of the block may lack, so that its parser looks for them. None when lines are read
   * to their ends for their errors: some row has a field already that the parser then cannot give.
   */
  #missingFields(block: BlockRows["block"], streamLabels: BlockRows["streamLabels"]): number {
    const { count, stream } = block.runs;
    const readsOn = this.#isWhole && this.#fails;
    let bits = 0;
    for (const [field, name] of this.#names.entries()) {
      const values = this.#row.labels.metadata?.columns.find((column) => column.name === name);
      if (values !== undefined && readsOn) return 0;
      if (values !== undefined && isInAllRows(values)) continue;
      let having = 0;
      for (let run = 0; run < count; run++) {
        if (streamLabels(stream[run]!).names.includes(name)) having++;
        else if (!readsOn) break;
      }
      if (having > 0 && readsOn) return 0;
      if (having < count) bits |= 1 << field;
    }
    return bits;
  }
}

/** True when every row of the block has a value of the metadata. */
function isInAllRows({ column }: MetadataValues): boolean {
  if (column.kind === "bytes") return false;
  const { offsets } = column.dictionary;
  return offsets.every((offset, i) => i === 0 || offset > offsets[i - 1]!);
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
  return [...guard.keys()].filter((name) => !isErrorLabel(name) && !isExtracted(name));
}

/** Such a name may stand for a key of another name. */
function isExtracted(name: string): boolean {
  return name.endsWith(extractedSuffix);
}
