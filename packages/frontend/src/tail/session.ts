import type { Tailer, TailRequest, TailRows } from "@skald/contracts";
import type { LogResult } from "@skald/logql";
import { type Clock, unavailable } from "@skald/model";
import type { TextSocket } from "@skald/transport";
import { encodeTail, type TailForm, type TailItem } from "../encode/tail.js";
import { DelayedRows } from "./delayed-rows.js";
import type { TailParams } from "./params.js";
import { Seam } from "./seam.js";

export interface TailSessionDeps {
  readonly ingester: Tailer;
  /** The newest rows of the time before `endNs`, newest first. */
  readonly history: (params: TailParams, endNs: bigint, signal: AbortSignal) => Promise<LogResult>;
  readonly clock: Clock;
}

/** Clocks of those who push may be ahead by so much. */
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
      const { rows, dropped } = item.value;
      const order = rows === undefined ? [] : seam.newRows(rows);
      if (held === undefined || rows === undefined) {
        await send(rows === undefined ? { order, dropped } : { rows, order, dropped });
      } else {
        held.add(rows, order, clock.nowMs());
        if (dropped.length > 0) await send({ order: [], dropped });
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

/** Rows that are there newest first, oldest first. */
function upwards(count: number): number[] {
  return Array.from({ length: count }, (_, i) => count - 1 - i);
}
