import { randomUUID } from "node:crypto";
import {
  type CallOptions,
  type Outcome,
  type ScheduledCall,
  type Scheduler,
  scheduledErrorOf,
  type TakenCall,
} from "@skald/contracts";
import { sleep as defaultSleep, type Sleep } from "@skald/runtime";

/** Pause before a scheduler that could not be reached is tried again. */
const retryMs = 500;
/** Answers are sent together up to this size. */
const maxToldBytes = 256 * 1024;

export interface TakeCallsOptions {
  readonly scheduler: Scheduler;
  /** Answers a call; see `answerScheduled`. */
  readonly answer: (call: ScheduledCall, options: CallOptions) => Promise<Uint8Array>;
  /** Calls that are run at a time. */
  readonly width: LaneWidth;
  /** Ends the running calls and takes no more. */
  readonly signal: AbortSignal;
  /** Called with the error when the scheduler cannot be reached, and with `undefined` when it can again. */
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

/** Runs until the scheduler cannot be reached, and returns the error. */
async function takeWhileConnected(options: TakeCallsOptions): Promise<unknown> {
  const { scheduler, signal, onState } = options;
  const session = { querier: randomUUID() };
  const stop = new AbortController();
  const both = AbortSignal.any([signal, stop.signal]);
  const running = new Map<number, AbortController>();
  try {
    await scheduler.watch(session, { signal: both });
    onState?.(undefined);
    await Promise.all([
      watchCancelled(scheduler, session, running, both),
      new Lanes(options, { session, running, signal: both }).run(),
    ]);
    return undefined;
  } catch (error) {
    return error;
  } finally {
    stop.abort();
    for (const one of running.values()) one.abort(signal.reason);
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

/** Runs as many calls at a time as there is room for. One call sends the answers that end together and takes the next calls. */
class Lanes {
  readonly #options: TakeCallsOptions;
  readonly #session: Session;
  /** Lanes that run a call or wait for one. */
  #engaged = 0;
  #finished: Outcome[] = [];
  #isDue = false;
  #fail: (error: unknown) => void = () => undefined;

  constructor(options: TakeCallsOptions, session: Session) {
    this.#options = options;
    this.#session = session;
  }

  /** Rejects with the scheduler's error; resolves when the signal is aborted. */
  async run(): Promise<void> {
    const { signal } = this.#session;
    const { width } = this.#options;
    const failed = new Promise<never>((_, reject) => {
      this.#fail = reject;
    });
    while (!signal.aborted) {
      this.#fill();
      await Promise.race([width.changed(signal), failed]);
    }
  }

  /** Fills the lanes after all calls that end now. */
  #fillSoon(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    process.nextTick(() => {
      this.#isDue = false;
      if (!this.#session.signal.aborted) this.#fill();
    });
  }

  /** Takes calls for all free lanes, and sends finished answers. */
  #fill(): void {
    const finished = this.#finished;
    this.#finished = [];
    const max = Math.max(0, this.#options.width.now - this.#engaged);
    this.#engaged += max;
    const together = max > 0 ? countWithin(finished, maxToldBytes) : 0;
    if (max > 0) void this.#take(max, finished.slice(0, together));
    for (const outcome of finished.slice(together)) void this.#tell(outcome);
  }

  async #tell(outcome: Outcome): Promise<void> {
    const { session, signal } = this.#session;
    await this.#options.scheduler.finish({ ...session, ...outcome }, { signal }).catch(this.#fail);
  }

  async #take(max: number, [finished, ...others]: readonly Outcome[]): Promise<void> {
    const { session, signal } = this.#session;
    const told = { others, ...(finished === undefined ? {} : { finished }) };
    const request = { ...session, ...told, ...(max > 1 ? { max } : {}) };
    try {
      const taken = await this.#options.scheduler.take(request, { signal });
      const { others: more } = taken;
      for (const one of [taken, ...more]) void this.#answer(one);
      if (more.length + 1 === max) return;
      this.#engaged -= max - more.length - 1;
      this.#fillSoon();
    } catch (error) {
      this.#fail(error);
    }
  }

  async #answer({ id, call }: TakenCall): Promise<void> {
    const { running } = this.#session;
    const own = new AbortController();
    running.set(id, own);
    const outcome = await this.#options.answer(call, { signal: own.signal }).then(
      (body) => ({ id, body }),
      (error: unknown) => ({ id, error: scheduledErrorOf(error) }),
    );
    running.delete(id);
    if (!own.signal.aborted) this.#finished.push(outcome);
    this.#engaged--;
    this.#fillSoon();
  }
}

/** How many of the first outcomes fit into the bound, at least one. */
function countWithin(outcomes: readonly Outcome[], maxBytes: number): number {
  let bytes = 0;
  const over = outcomes.findIndex(({ body }) => {
    bytes += body?.length ?? 0;
    return bytes > maxBytes;
  });
  return over < 0 ? outcomes.length : Math.max(1, over);
}

/** How many calls may be taken at a time. It changes with the number of schedulers. */
export class LaneWidth {
  /** The most calls at a time. */
  readonly most: number;
  readonly #waiting = new Set<() => void>();
  #now: number;

  constructor(most: number) {
    this.most = most;
    this.#now = most;
  }

  get now(): number {
    return this.#now;
  }

  /** Divides the calls among schedulers, at least one for each. */
  shareAmong(schedulers: number): void {
    this.#now = Math.ceil(this.most / Math.max(1, schedulers));
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  /** Resolves when it may be another, and when the signal is aborted. */
  changed(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal.aborted) resolve();
      const wake = () => {
        signal.removeEventListener("abort", wake);
        this.#waiting.delete(wake);
        resolve();
      };
      signal.addEventListener("abort", wake, { once: true });
      this.#waiting.add(wake);
    });
  }
}
