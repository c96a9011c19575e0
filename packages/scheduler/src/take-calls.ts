import { randomUUID } from "node:crypto";
import {
  type CallOptions,
  type Outcome,
  type ScheduledCall,
  type Scheduler,
  scheduledErrorOf,
} from "@skald/contracts";
import { sleep as defaultSleep, type Sleep } from "@skald/runtime";
import type { LaneWidth } from "./lane-width.js";

/** After a scheduler could not be reached it is tried again after this. */
const retryMs = 500;

export interface TakeCallsOptions {
  readonly scheduler: Scheduler;
  /** Answers a call; see `answerScheduled`. */
  readonly answer: (call: ScheduledCall, options: CallOptions) => Promise<Uint8Array>;
  /** Calls that are run at a time. */
  readonly width: LaneWidth;
  /** No further calls are taken once it fires; those that run are ended. */
  readonly signal: AbortSignal;
  /** Told when the scheduler cannot be reached, and when it can again (`undefined`). */
  readonly onState?: (error: unknown) => void;
  readonly sleep?: Sleep;
}

/** Takes calls from a scheduler, as many as can run at a time, and answers them; connects again for as long as it runs. */
export async function takeCalls(options: TakeCallsOptions): Promise<void> {
  const { signal, onState, sleep = defaultSleep } = options;
  while (!signal.aborted) {
    const failed = await takeWhileConnected(options);
    if (signal.aborted) return;
    onState?.(failed);
    await sleep(retryMs, signal).catch(() => undefined);
  }
}

/** Runs until the scheduler cannot be reached; gives why. */
async function takeWhileConnected(options: TakeCallsOptions): Promise<unknown> {
  const { scheduler, width, signal, onState } = options;
  const session = { querier: randomUUID() };
  const stop = new AbortController();
  const both = AbortSignal.any([signal, stop.signal]);
  const running = new Map<number, AbortController>();
  try {
    await scheduler.watch(session, { signal: both });
    onState?.(undefined);
    await Promise.all([
      watchCancelled(scheduler, session, running, both),
      ...Array.from({ length: width.most }, (_, number) =>
        lane({ ...options, number }, { session, running, signal: both }),
      ),
    ]);
    return undefined;
  } catch (error) {
    return error;
  } finally {
    stop.abort();
    for (const one of running.values()) one.abort();
  }
}

async function watchCancelled(
  scheduler: Scheduler,
  session: { readonly querier: string },
  running: ReadonlyMap<number, AbortController>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const { ids } = await scheduler.watch(session, { signal });
    for (const id of ids) running.get(id)?.abort();
  }
}

interface Session {
  readonly session: { readonly querier: string };
  readonly running: Map<number, AbortController>;
  readonly signal: AbortSignal;
}

async function lane(
  { scheduler, answer, width, number }: TakeCallsOptions & { readonly number: number },
  { session, running, signal }: Session,
): Promise<void> {
  let last: { readonly finished: Outcome } | undefined;
  while (!signal.aborted) {
    if (number >= width.now) {
      if (last !== undefined) await scheduler.finish({ ...session, ...last.finished }, { signal });
      last = undefined;
      await width.changed(signal);
      continue;
    }
    const { id, call } = await scheduler.take({ ...session, ...last }, { signal });
    const own = new AbortController();
    running.set(id, own);
    const both = AbortSignal.any([signal, own.signal]);
    const outcome = await answer(call, { signal: both }).then(
      (body) => ({ body }),
      (error: unknown) => ({ error: scheduledErrorOf(error) }),
    );
    running.delete(id);
    last = own.signal.aborted ? undefined : { finished: { id, ...outcome } };
  }
}
