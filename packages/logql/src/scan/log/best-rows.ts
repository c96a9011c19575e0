import { dayNs } from "@skald/model";
import { defaultMaxLineBytes } from "../../pipeline/row/line-builder.js";
import type { SeriesTable } from "../../pipeline/types.js";
import { tooMuchMemory } from "../../plan/budget.js";
import type { LogPlan } from "../../plan/plan.js";
import type { RowLabels } from "../../plan/result.js";
import { type RowPlace, RowStore } from "./row-store.js";
import { siftRows } from "./thinning.js";

/** The rows of a scan take at most this part of what a query may hold: what it finds is held again where it is merged. */
const partOfScan = 1 / 2;
/** Memory of a row besides its line. */
const rowBytes = 64;

/** A label set where the pipeline noted it: most rows are dropped again, and theirs are never made. */
export interface NotedLabels {
  readonly table: SeriesTable;
  readonly series: number;
}

/** Keeps the best rows of those that are added, and the label sets they use. */
export class BestRows {
  #store = new RowStore();
  #labels: (NotedLabels | RowLabels)[] = [];
  #worst: RowPlace | undefined;
  readonly #plan: LogPlan;
  readonly #limit: number;
  readonly #maxLineBytes: number;

  constructor(plan: LogPlan) {
    this.#plan = plan;
    this.#limit = plan.limit;
    this.#maxLineBytes = plan.maxLineBytes ?? defaultMaxLineBytes;
  }

  /** The worst row that still counts, once there are enough; label sets are renumbered whenever it changes. */
  get worst(): RowPlace | undefined {
    return this.#worst;
  }

  /** Number of a label set for `push`, valid until the next `prune`. */
  addLabels(labels: NotedLabels): number {
    return this.#labels.push(labels) - 1;
  }

  push(place: RowPlace, line: Uint8Array): void {
    const held = this.#store.bytes.length + line.length + (this.#store.count + 1) * rowBytes;
    if (held > this.#maxLineBytes * partOfScan) throw tooMuchMemory(this.#maxLineBytes);
    this.#store.push(place, line);
  }

  /** True when rows should be dropped: call `prune` between two blocks. */
  get isFull(): boolean {
    const { count, bytes } = this.#store;
    if (this.#worst === undefined && count >= this.#limit) return true;
    const slack = Math.max(256, this.#limit >>> 2);
    const isLarge = bytes.length > (this.#maxLineBytes * partOfScan) / 4;
    return count > this.#limit + slack || (count > this.#limit && isLarge);
  }

  prune(): void {
    const { rows, isCut } = this.#best();
    this.#keep(rows);
    if (isCut && rows.length > 0) this.#worst = this.#store.place(rows.length - 1);
  }

  /** Makes the label sets of the rows kept, so that no table is needed any more. */
  makeLabels(): RowLabels[] {
    this.prune();
    const made = this.#labels.map((labels) => ("table" in labels ? makeNoted(labels) : labels));
    this.#labels = made;
    return made;
  }

  /** The rows kept, best first, and their label sets. */
  finish(): { readonly rows: RowStore; readonly labels: readonly RowLabels[] } {
    const labels = this.makeLabels();
    return { rows: this.#store, labels };
  }

  #best(): { readonly rows: Uint32Array; readonly isCut: boolean } {
    const order = this.#store.order(this.#plan.direction);
    if (this.#plan.intervalNs > 0n)
      return siftRows(this.#plan, order, (row) => this.#store.timestampNs(row));
    return { rows: order.subarray(0, this.#limit), isCut: order.length >= this.#limit };
  }

  #keep(order: Uint32Array): void {
    let lineBytes = 0;
    for (const at of order) lineBytes += this.#store.lineBytes(at);
    const store = new RowStore(order.length, lineBytes);
    const labels: (NotedLabels | RowLabels)[] = [];
    const renumbered = new Map<number, number>();
    for (const at of order) {
      const place = this.#store.place(at);
      let labelSet = renumbered.get(place.labelSet);
      if (labelSet === undefined) {
        labelSet = labels.push(this.#labels[place.labelSet]!) - 1;
        renumbered.set(place.labelSet, labelSet);
      }
      store.push({ ...place, labelSet }, this.#store.line(at));
    }
    this.#store = store;
    this.#labels = labels;
  }
}

function makeNoted({ table, series }: NotedLabels): RowLabels {
  const { labels, categories } = table.get(series);
  if (categories === undefined) throw new Error("log output without label categories");
  return { labels, categories };
}

/** ns since the epoch of a place. */
export function timestampOf(place: RowPlace): bigint {
  return BigInt(place.day) * dayNs + BigInt(place.time);
}
