import type { TailItem } from "../encode/tail.js";

interface HeldRow {
  readonly item: TailItem["rows"] & object;
  readonly row: number;
  readonly timestampNs: bigint;
  readonly dueMs: number;
}

/** Rows that are held at most; more make the oldest go early. */
const maxHeldRows = 50_000;

/** Holds rows back for a while after their time, so that they go in the order of their times. */
export class DelayedRows {
  readonly #delayMs: number;
  #held: HeldRow[] = [];

  constructor(delayMs: number) {
    this.#delayMs = delayMs;
  }

  /** When the next of them may go, ms since the epoch; undefined when there is none. */
  get nextMs(): number | undefined {
    let next: number | undefined;
    for (const { dueMs } of this.#held) if (next === undefined || dueMs < next) next = dueMs;
    return next;
  }

  add(rows: TailItem["rows"] & object, order: readonly number[], nowMs: number): void {
    for (const row of order) {
      const timestampNs = rows.timestamps[row] as bigint;
      const dueMs = Math.min(nowMs, Number(timestampNs / 1_000_000n)) + this.#delayMs;
      this.#held.push({ item: rows, row, timestampNs, dueMs });
    }
  }

  /** Takes those that may go, in the order of their times: neighbours of one result together. */
  take(nowMs: number): TailItem[] {
    const isFull = this.#held.length > maxHeldRows;
    const due = this.#held.filter(({ dueMs }) => isFull || dueMs <= nowMs);
    if (due.length === 0) return [];
    this.#held = isFull ? [] : this.#held.filter(({ dueMs }) => dueMs > nowMs);
    due.sort((a, b) => Number(a.timestampNs - b.timestampNs));
    const items: { rows: TailItem["rows"] & object; order: number[]; dropped: [] }[] = [];
    for (const { item, row } of due) {
      const last = items.at(-1);
      if (last?.rows === item) last.order.push(row);
      else items.push({ rows: item, order: [row], dropped: [] });
    }
    return items;
  }
}
