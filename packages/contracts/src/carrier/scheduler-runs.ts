import { randomUUID } from "node:crypto";
import { errorCodeOf, unavailable } from "@skald/model";
import { isTracing } from "@skald/runtime/tracing";
import type { CallOptions } from "../call.js";
import { errorOfScheduled, scheduledErrorOf } from "../codec/scheduled.js";
import type { ScheduledAnswer, ScheduledCall, Scheduler } from "../scheduler.js";

/** Calls that are asked at the same time; each has its place in the list as its name. */
export interface RunRequest {
  readonly batch: string;
  readonly calls: readonly ScheduledCall[];
}

/** Answers of some calls of a batch; the first is of none, and says that the batch is known. */
export interface RunAnswers {
  readonly answers: readonly RunAnswer[];
}

/** Of body and error one is there; an error is thrown where it is of no querier. */
export interface RunAnswer extends ScheduledAnswer {
  readonly index: number;
}

export interface CancelRun {
  readonly batch: string;
  readonly index: number;
}

/** What a scheduler elsewhere has for those who run calls. */
export interface RemoteRuns {
  /** One call; `runsMany`: whether it knows of batches. */
  run(call: ScheduledCall, options: CallOptions): Promise<ScheduledAnswer & RunsMany>;
  runMany(request: RunRequest, options: CallOptions): AsyncIterable<RunAnswers>;
  cancelRun(request: CancelRun, options: CallOptions): Promise<unknown>;
}

export interface RunsMany {
  readonly runsMany?: boolean;
}

/** Bounds of one message: calls of a batch, and bytes after which no more is added. */
const maxCalls = 128;
const maxBytes = 256 * 1024;
const never = new AbortController().signal;

interface Asked {
  readonly call: ScheduledCall;
  readonly options: CallOptions;
  readonly resolve: (answer: ScheduledAnswer) => void;
  readonly reject: (error: unknown) => void;
}

/** Has calls that are asked at the same time go in one stream, once the other side said that it knows of that. */
export class RunBatches {
  readonly #remote: RemoteRuns;
  #runsMany = false;
  #asked: Asked[] = [];

  constructor(remote: RemoteRuns) {
    this.#remote = remote;
  }

  run(call: ScheduledCall, options: CallOptions): Promise<ScheduledAnswer> {
    // A span of a call is of that call alone, and so is a deadline.
    if (!this.#runsMany || isTracing() || options.deadlineMs !== undefined)
      return this.#runOne(call, options);
    return new Promise((resolve, reject) => {
      options.signal.throwIfAborted();
      this.#asked.push({ call, options, resolve, reject });
      if (this.#asked.length === 1) setImmediate(() => this.#flush());
    });
  }

  async #runOne(call: ScheduledCall, options: CallOptions): Promise<ScheduledAnswer> {
    const { runsMany = false, ...answer } = await this.#remote.run(call, options);
    this.#runsMany = runsMany;
    // What is empty an older one leaves out.
    const isEmpty = answer.body === undefined && answer.error === undefined;
    return isEmpty ? { ...answer, body: new Uint8Array(0) } : answer;
  }

  #flush(): void {
    const asked = this.#asked;
    this.#asked = [];
    for (const batch of inBounds(asked, ({ call }) => call.body.length)) {
      const [first] = batch;
      if (first === undefined) continue;
      if (batch.length > 1) void this.#runBatch(batch);
      else this.#runOne(first.call, first.options).then(first.resolve, first.reject);
    }
  }

  async #runBatch(asked: readonly Asked[]): Promise<void> {
    const batch = new Batch(asked, this.#remote);
    try {
      await batch.run();
    } catch (error) {
      // It may be an older one by now.
      if (errorCodeOf(error) === "unavailable") this.#runsMany = false;
      batch.fail(error);
    }
  }
}

/** Calls that went together, until each is answered or nobody waits for it. */
class Batch {
  readonly #name = randomUUID();
  readonly #remote: RemoteRuns;
  readonly #left = new Map<number, Asked & { readonly onAbort: () => void }>();
  readonly #over = new AbortController();
  /** Calls that were given up before the other side knew of them. */
  #early: number[] | undefined = [];
  readonly #calls: readonly ScheduledCall[];

  constructor(asked: readonly Asked[], remote: RemoteRuns) {
    this.#remote = remote;
    this.#calls = asked.map(({ call }) => call);
    for (const [index, one] of asked.entries()) {
      const onAbort = () => this.#giveUp(index, one.options.signal.reason);
      this.#left.set(index, { ...one, onAbort });
      one.options.signal.addEventListener("abort", onAbort, { once: true });
      if (one.options.signal.aborted) onAbort();
    }
  }

  async run(): Promise<void> {
    if (this.#left.size === 0) return;
    const request = { batch: this.#name, calls: this.#calls };
    for await (const { answers } of this.#remote.runMany(request, { signal: this.#over.signal })) {
      const early = this.#early ?? [];
      this.#early = undefined;
      for (const index of early) this.#cancel(index);
      for (const { index, ...answer } of answers) {
        const one = this.#end(index);
        const { error, querier } = answer;
        if (error !== undefined && querier === undefined) one?.reject(errorOfScheduled(error));
        else one?.resolve(answer);
      }
    }
    if (this.#left.size > 0) throw unavailable("the scheduler left calls without an answer");
  }

  /** Ends what is left. */
  fail(error: unknown): void {
    for (const index of [...this.#left.keys()]) this.#end(index)?.reject(error);
  }

  #end(index: number) {
    const one = this.#left.get(index);
    this.#left.delete(index);
    one?.options.signal.removeEventListener("abort", one.onAbort);
    return one;
  }

  #giveUp(index: number, reason: unknown): void {
    this.#end(index)?.reject(reason);
    if (this.#left.size === 0) this.#over.abort(reason);
    else if (this.#early !== undefined) this.#early.push(index);
    else this.#cancel(index);
  }

  #cancel(index: number): void {
    // Where it does not arrive, the end of the stream says the same.
    this.#remote.cancelRun({ batch: this.#name, index }, { signal: never }).catch(() => undefined);
  }
}

/** Runs batches at a scheduler of this process. */
export class ServedRuns {
  readonly #scheduler: Scheduler;
  readonly #batches = new Map<string, ReadonlyMap<number, AbortController>>();

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  /** The answers as they come. Calls that are left when nobody reads them any more are ended. */
  async *runMany(
    { batch, calls }: RunRequest,
    { signal }: CallOptions,
  ): AsyncGenerator<RunAnswers, void> {
    const running = new Map(calls.map((_, index) => [index, new AbortController()]));
    let ready: RunAnswer[] = [];
    let wake: () => void = () => undefined;
    const end = () => {
      for (const one of running.values()) one.abort(signal.reason);
      wake();
    };
    signal.addEventListener("abort", end, { once: true });
    this.#batches.set(batch, running);
    for (const [index, own] of running) {
      void this.#run(index, calls[index] as ScheduledCall, own.signal).then((answer) => {
        running.delete(index);
        ready.push(answer);
        wake();
      });
    }
    try {
      yield { answers: [] };
      for (let left = calls.length; left > 0; ) {
        if (ready.length === 0 && !signal.aborted) {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
        signal.throwIfAborted();
        const now = ready;
        ready = [];
        left -= now.length;
        for (const answers of inBounds(now, ({ body }) => body?.length ?? 0)) yield { answers };
      }
    } finally {
      signal.removeEventListener("abort", end);
      this.#batches.delete(batch);
      end();
    }
  }

  /** Nobody waits for a call of a batch any more. */
  cancel({ batch, index }: CancelRun): void {
    this.#batches.get(batch)?.get(index)?.abort();
  }

  async #run(index: number, call: ScheduledCall, signal: AbortSignal): Promise<RunAnswer> {
    try {
      return { index, ...(await this.#scheduler.run(call, { signal })) };
    } catch (error) {
      return { index, queueSeconds: 0, error: scheduledErrorOf(error) };
    }
  }
}

/** The list in stretches of which each makes one message. */
function* inBounds<T>(list: readonly T[], bytesOf: (one: T) => number): Generator<readonly T[]> {
  let from = 0;
  let bytes = 0;
  for (const [i, one] of list.entries()) {
    const isFull = i - from >= maxCalls || bytes + bytesOf(one) > maxBytes;
    if (isFull && i > from) {
      yield list.slice(from, i);
      from = i;
      bytes = 0;
    }
    bytes += bytesOf(one);
  }
  if (from < list.length) yield list.slice(from);
}
