import type {
  CallOptions,
  CancelledCalls,
  Scheduler as Contract,
  FinishedCall,
  Outcome,
  ScheduledAnswer,
  ScheduledCall,
  TakeNext,
  TakenCall,
  TakenCalls,
  TakeRequest,
} from "@skald/contracts";
import { notFound, type SteadyClock, steadyClock, unavailable } from "@skald/model";
import { sleep as defaultSleep, type Sleep, type WaitingJob } from "@skald/runtime";
import type { Metrics } from "@skald/runtime/metrics";
import { FairQueue } from "./fair-queue.js";

/** Queriers that a call may be lost with before it fails. */
const maxLost = 3;
/** Calls are taken together up to this size. */
const maxTakenBytes = 256 * 1024;
/** A querier that does not watch again within this time is gone. */
const watchGraceMs = 10_000;
/** A watch ends after this time, so that the querier shows that it is alive: the connection of a dead one may stay for hours. */
const watchMs = 5_000;

export interface SchedulerOptions {
  /** Calls of one tenant that may wait; 0: no limit. */
  readonly maxOutstandingPerTenant: number;
  /** See `FairQueueOptions`. */
  readonly maxLevels: number;
  readonly metrics: Metrics;
  readonly clock?: SteadyClock;
  readonly sleep?: Sleep;
}

const noAnswer = { code: "internal", message: "no answer" };

/** A call from when it is asked until it is answered. */
interface Entry extends WaitingJob {
  readonly id: number;
  readonly call: ScheduledCall;
  readonly since: number;
  queueSeconds: number;
  lost: number;
  /** The querier that runs it. */
  querier: string | undefined;
  readonly resolve: (answer: ScheduledAnswer) => void;
  readonly reject: (error: unknown) => void;
}

interface WatchingQuerier {
  readonly running: Set<Entry>;
  /** Cancelled calls that it has not heard of yet. */
  cancelled: number[];
  /** Ends the current watch. */
  tell: (() => void) | undefined;
  watches: number;
}

interface Taker {
  readonly querier: string;
  /** The number of calls that it has room for. */
  readonly max: number;
  readonly give: (entries: readonly Entry[]) => void;
  readonly refuse: (error: unknown) => void;
}

/** The fair queue between frontends and queriers: a free querier takes the next call. */
export class Scheduler implements Contract {
  readonly #queue: FairQueue;
  /** Calls whose turn came with a querier that must not run them. */
  readonly #apart = new Set<Entry>();
  readonly #clock: SteadyClock;
  readonly #sleep: Sleep;
  readonly #queued;
  readonly #queriers = new Map<string, WatchingQuerier>();
  readonly #running = new Map<number, Entry>();
  readonly #takers = new Set<Taker>();
  readonly #stop = new AbortController();
  #calls = 0;

  constructor({ maxOutstandingPerTenant, maxLevels, metrics, clock, sleep }: SchedulerOptions) {
    this.#queue = new FairQueue({
      maxLevels,
      ...(maxOutstandingPerTenant > 0 ? { maxOutstandingPerTenant } : {}),
    });
    this.#clock = clock ?? steadyClock;
    this.#sleep = sleep ?? defaultSleep;
    const prefix = "query_scheduler_";
    this.#queued = metrics.histogram(`${prefix}queue_duration_seconds`, "How long calls waited.");
    metrics.gaugeOf(`${prefix}queue_length`, "Calls that wait.", () => this.waiting);
    metrics.gaugeOf(
      `${prefix}inflight_requests`,
      "Calls that wait or run.",
      () => this.waiting + this.#running.size,
    );
    metrics.gaugeOf(
      `${prefix}connected_querier_clients`,
      "Queriers that take calls.",
      () => this.#queriers.size,
    );
  }

  /** Queriers that take calls; without any, calls wait. */
  get queriers(): number {
    return this.#queriers.size;
  }

  /** Calls that wait for a querier. */
  get waiting(): number {
    return this.#queue.size + this.#apart.size;
  }

  run(call: ScheduledCall, { signal }: CallOptions): Promise<ScheduledAnswer> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      this.#stop.signal.throwIfAborted();
      const onAbort = () => this.#cancel(entry, signal.reason);
      const share = { tenant: call.tenant, actors: call.actors, cost: 0 };
      const entry: Entry = {
        ...{ name: call.method, options: { lane: "query", share } },
        ...{ id: this.#calls++, call, since: this.#clock.elapsedMs() },
        ...{ queueSeconds: 0, lost: 0, querier: undefined },
        resolve: (answer) => {
          signal.removeEventListener("abort", onAbort);
          resolve(answer);
        },
        reject: (error) => {
          signal.removeEventListener("abort", onAbort);
          reject(error);
        },
      };
      this.#queue.push(entry);
      signal.addEventListener("abort", onAbort, { once: true });
      this.#dispatch();
    });
  }

  take(request: TakeNext, { signal }: CallOptions): Promise<TakenCalls> {
    const { querier, finished, others, max = 1 } = request;
    return new Promise((resolve, reject) => {
      if (finished !== undefined) this.#finish(querier, finished);
      for (const one of others) this.#finish(querier, one);
      signal.throwIfAborted();
      this.#stop.signal.throwIfAborted();
      if (!this.#queriers.has(querier)) throw notFound(`the querier ${querier} is not watching`);
      const end = () => {
        this.#takers.delete(taker);
        signal.removeEventListener("abort", onAbort);
      };
      const refuse = (error: unknown) => {
        end();
        reject(error);
      };
      const onAbort = () => refuse(signal.reason);
      const taker: Taker = {
        ...{ querier, refuse, max },
        give: (entries) => {
          end();
          const [first, ...rest] = entries.map(({ id, call }) => ({ id, call }));
          resolve({ ...(first as TakenCall), others: rest });
        },
      };
      signal.addEventListener("abort", onAbort, { once: true });
      this.#takers.add(taker);
      this.#dispatch();
    });
  }

  async finish({ querier, ...outcome }: FinishedCall): Promise<void> {
    this.#finish(querier, outcome);
  }

  #finish(querier: string, { id, body, error }: Outcome): void {
    const entry = this.#running.get(id);
    if (entry === undefined || entry.querier !== querier) return;
    this.#running.delete(id);
    this.#queriers.get(querier)?.running.delete(entry);
    const { queueSeconds } = entry;
    if (body !== undefined) entry.resolve({ body, queueSeconds });
    else entry.resolve({ error: error ?? noAnswer, querier, queueSeconds });
  }

  async watch({ querier }: TakeRequest, { signal }: CallOptions): Promise<CancelledCalls> {
    this.#stop.signal.throwIfAborted();
    const known = this.#queriers.get(querier);
    if (known === undefined) {
      const one = { running: new Set<Entry>(), cancelled: [], tell: undefined, watches: 0 };
      this.#queriers.set(querier, one);
      this.#expectWatch(querier, one);
      return { ids: [] };
    }
    known.watches++;
    if (known.cancelled.length === 0) await this.#untilTold(known, signal);
    this.#stop.signal.throwIfAborted();
    if (signal.aborted) {
      // Only a lost connection aborts a watch.
      this.#lose(querier);
      throw signal.reason;
    }
    const ids = known.cancelled;
    known.cancelled = [];
    this.#expectWatch(querier, known);
    return { ids };
  }

  /** Waits until there is news for a querier, or until it is time for its next watch. */
  async #untilTold(querier: WatchingQuerier, signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      const over = new AbortController();
      const end = () => {
        over.abort();
        resolve();
      };
      querier.tell = end;
      signal.addEventListener("abort", end, { once: true });
      void this.#sleep(watchMs, over.signal).then(end, () => undefined);
    });
    querier.tell = undefined;
  }

  /** Ends all that waits or runs. */
  stop(): void {
    const reason = unavailable("the scheduler is stopping; try again");
    this.#stop.abort(reason);
    for (let job = this.#queue.take(); job !== undefined; job = this.#queue.take()) {
      (job as Entry).reject(reason);
    }
    for (const entry of this.#apart) entry.reject(reason);
    this.#apart.clear();
    for (const entry of this.#running.values()) entry.reject(reason);
    for (const taker of this.#takers) taker.refuse(reason);
    for (const querier of this.#queriers.values()) querier.tell?.();
    this.#running.clear();
    this.#queriers.clear();
  }

  #dispatch(): void {
    for (const taker of this.#takers) {
      if (this.waiting === 0) return;
      const entries = this.#takeFor(taker);
      if (entries.length > 0) taker.give(entries);
    }
  }

  /** Takes the next calls, at most a querier's share of those that wait. */
  #takeFor({ querier: name, max }: Taker): readonly Entry[] {
    const querier = this.#queriers.get(name) as WatchingQuerier;
    const share = Math.min(max, Math.ceil(this.waiting / this.#queriers.size));
    const entries: Entry[] = [];
    let bytes = 0;
    while (entries.length < share && bytes < maxTakenBytes) {
      const entry = this.#nextFor(name);
      if (entry === undefined) break;
      entry.querier = name;
      entry.queueSeconds = (this.#clock.elapsedMs() - entry.since) / 1000;
      this.#queued.observe(entry.queueSeconds);
      this.#running.set(entry.id, entry);
      querier.running.add(entry);
      entries.push(entry);
      bytes += entry.call.body.length;
    }
    return entries;
  }

  #nextFor(querier: string): Entry | undefined {
    for (const entry of this.#apart) {
      if (!this.#mayRun(querier, entry)) continue;
      this.#apart.delete(entry);
      return entry;
    }
    for (;;) {
      const entry = this.#queue.take() as Entry | undefined;
      if (entry === undefined || this.#mayRun(querier, entry)) return entry;
      this.#apart.add(entry);
    }
  }

  /** Whether a call does not avoid a querier, or avoids all queriers. */
  #mayRun(querier: string, { call: { avoid } }: Entry): boolean {
    return (
      !avoid.includes(querier) || [...this.#queriers.keys()].every((name) => avoid.includes(name))
    );
  }

  #cancel(entry: Entry, reason: unknown): void {
    entry.reject(reason);
    if (entry.querier === undefined) {
      if (!this.#apart.delete(entry)) this.#queue.delete(entry);
      return;
    }
    this.#running.delete(entry.id);
    const querier = this.#queriers.get(entry.querier);
    if (querier === undefined) return;
    querier.running.delete(entry);
    querier.cancelled.push(entry.id);
    querier.tell?.();
  }

  /** Queues the calls of a lost querier again. */
  #lose(name: string): void {
    const querier = this.#queriers.get(name);
    if (querier === undefined) return;
    this.#queriers.delete(name);
    for (const taker of this.#takers) {
      if (taker.querier === name) taker.refuse(notFound(`the querier ${name} does not watch`));
    }
    for (const entry of querier.running) {
      this.#running.delete(entry.id);
      entry.querier = undefined;
      entry.lost++;
      if (entry.lost >= maxLost) {
        const { lost, queueSeconds } = entry;
        const message = `${lost} queriers were lost while they ran the query`;
        // The call may be what killed them.
        const error = { code: "unavailable", message, isFinal: true };
        entry.resolve({ error, querier: name, queueSeconds });
        continue;
      }
      try {
        this.#queue.push(entry);
      } catch (error) {
        entry.reject(error);
      }
    }
    this.#dispatch();
  }

  #expectWatch(name: string, querier: WatchingQuerier): void {
    const { watches } = querier;
    void this.#sleep(watchGraceMs, this.#stop.signal).then(
      () => {
        const isGone = querier.watches === watches && this.#queriers.get(name) === querier;
        if (isGone) this.#lose(name);
      },
      () => undefined,
    );
  }
}
