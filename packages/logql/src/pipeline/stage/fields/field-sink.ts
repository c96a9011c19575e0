import type { LabelFilter, Stage } from "../../../syntax/ast.js";
import { extractedName } from "../../row/labels.js";
import type { RowLabels } from "../../row/row-labels.js";
import { compileLabelFilter } from "../label-filter.js";
import type { ParserGuard, RowStage, RowState, StageContext } from "../row-state.js";
import { demandsErrors, keyWants } from "./key-tree.js";

/** What to do after a value was handed over. */
export const sinkSays = { goOn: 0, drop: 1, done: 2 } as const;

/**
 * Takes the fields that a parser finds in a row: gives them their names, keeps the first of each, asks the guard,
 * and tells when everything that anybody wants is there.
 */
export class FieldSink {
  readonly #labels: RowLabels;
  readonly #guards: (RowStage | undefined)[] = [];
  readonly #demanded: readonly number[] | undefined;
  readonly #demandsError: boolean;
  #remaining = Number.POSITIVE_INFINITY;

  constructor(row: RowState, { demand, guard }: StageContext) {
    this.#labels = row.labels;
    const { names } = row.labels;
    for (const [name, filter] of guard) {
      this.#guards[names.slotOf(name)] = compileLabelFilter(filter)(row);
    }
    this.#demanded = demand === "all" ? undefined : [...demand].map((name) => names.slotOf(name));
    this.#demandsError = demandsErrors(demand);
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
    // with only names that a parser cannot give, the line is still read: its errors count
    this.#remaining =
      this.#demandsError || producible === 0 ? Number.POSITIVE_INFINITY : producible;
    return missing > 0;
  }

  /** True when the line of the row is read to its end whatever is found. */
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

/** True when a stage that may set these labels is of use. */
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
