import type { Tailer, TailRequest, TailRows } from "@skald/contracts";
import { type LogResult, lineAt } from "@skald/logql";
import { type Clock, formatLabels, unavailable } from "@skald/model";
import type { TextSocket } from "@skald/transport";
import { encodeTail, type TailForm, type TailItem } from "../encode/tail.js";
import type { TailParams } from "../params/params.js";

export interface TailSessionDeps {
  readonly ingester: Tailer;
  /** The newest rows of the time before `endNs`, newest first. */
  readonly history: (params: TailParams, endNs: bigint, signal: AbortSignal) => Promise<LogResult>;
  readonly clock: Clock;
}

/** Clocks of clients that push may be ahead by this much. */
const maxAheadNs = 10_000_000_000n;

/**
 * Sends the history of a tail and then what comes in, until the signal. The tail at the ingester is opened before the
 * history is read, so that no row falls in between.
 */
export async function runTail(
  socket: Pick<TextSocket, "send">,
  { request, params, form }: { request: TailRequest; params: TailParams; form: TailForm },
  { ingester, history, clock }: TailSessionDeps,
  signal: AbortSignal,
): Promise<void> {
  const live = ingester.tail(request, { signal })[Symbol.asyncIterator]();
  const send = async (item: TailItem) => {
    for (const message of encodeTail(item, form)) await socket.send(message);
  };
  const opened = await live.next();
  if (opened.done === true) throw closed();
  const endNs = BigInt(clock.nowMs()) * 1_000_000n + maxAheadNs;
  const old = await history(params, endNs, signal);
  await send({ rows: old, order: upwards(old.rowCount), dropped: [] });
  const seam = new Seam(old, endNs);
  const held = params.delayMs > 0 ? new DelayedRows(params.delayMs) : undefined;
  let next = live.next();
  for (;;) {
    const item = await nextItem(next, held, clock);
    if (item !== "due") {
      if (item.done === true) break;
      next = live.next();
      const { rows, ...left } = item.value;
      const order = rows === undefined ? [] : seam.newRows(rows);
      if (held === undefined || rows === undefined) {
        await send(rows === undefined ? { order, ...left } : { rows, order, ...left });
      } else {
        held.add(rows, order, clock.nowMs());
        if (left.dropped.length > 0) await send({ order: [], ...left });
      }
    }
    for (const due of held?.take(clock.nowMs()) ?? []) await send(due);
  }
  signal.throwIfAborted();
  throw closed();
}

function closed(): Error {
  return unavailable("all ingesters closed the connection");
}

/** What comes next: rows, or the time at which some that are held may go. */
async function nextItem(
  next: Promise<IteratorResult<TailRows, unknown>>,
  held: DelayedRows | undefined,
  clock: Clock,
): Promise<IteratorResult<TailRows, unknown> | "due"> {
  const dueMs = held?.nextMs;
  if (dueMs === undefined) return next;
  let timer: NodeJS.Timeout | undefined;
  const due = new Promise<"due">((resolve) => {
    timer = setTimeout(() => resolve("due"), Math.max(1, dueMs - clock.nowMs()));
  });
  try {
    return await Promise.race([next, due]);
  } finally {
    clearTimeout(timer);
  }
}

/** Numbers of rows that are ordered newest first, in the order oldest first. */
function upwards(count: number): number[] {
  return Array.from({ length: count }, (_, i) => count - 1 - i);
}

/**
 * Keeps rows from coming twice where the history of a tail ends and its new rows begin: rows that came in while the history
 * was read may be in both. A row is known by its labels, its time and its line, as they are sent.
 */
export class Seam {
  readonly #keys = new Set<string>();
  readonly #endNs: bigint;

  /** `endNs`: the history has no row from this time on. */
  constructor(history: LogResult, endNs: bigint) {
    this.#endNs = endNs;
    const keyOf = keysOf(history);
    for (let row = 0; row < history.rowCount; row++) this.#keys.add(keyOf(row));
  }

  /** Numbers of the rows that the history did not have. */
  newRows(rows: LogResult): number[] {
    const keyOf = keysOf(rows);
    const found: number[] = [];
    for (let row = 0; row < rows.rowCount; row++) {
      const mayBeKnown = this.#keys.size > 0 && (rows.timestamps[row] as bigint) < this.#endNs;
      if (!mayBeKnown || !this.#keys.delete(keyOf(row))) found.push(row);
    }
    return found;
  }
}

function keysOf({ labels, labelSet, timestamps, lines }: LogResult): (row: number) => string {
  const texts: string[] = [];
  return (row) => {
    const set = labelSet[row] as number;
    texts[set] ??= formatLabels((labels[set] as LogResult["labels"][number]).labels);
    const line = Buffer.from(lineAt(lines, row)).toString("latin1");
    return `${timestamps[row]}${texts[set]}${line}`;
  };
}

interface HeldRow {
  readonly item: TailItem["rows"] & object;
  readonly row: number;
  readonly timestampNs: bigint;
  readonly dueMs: number;
}

/** The most rows that are held back; with more of them all go early. */
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
