import { Worker } from "node:worker_threads";
import { SkaldError } from "@skald/model";
import { markWork } from "../stretches.js";
import { type Span, takeSpan, within } from "../tracing.js";
import {
  buffersToMove,
  cancelledError,
  describeError,
  type FromThread,
  type JobResult,
  noJob,
  type Outcome,
  reviveError,
  type ToThread,
} from "./jobs.js";

export interface SeatOptions {
  /** Module whose top level calls `serveJobs`. */
  readonly url: URL;
  /** Lanes whose jobs it takes, in turns. */
  readonly lanes: readonly Lane[];
  /** Jobs that run there at a time. */
  readonly slots: number;
  /** Heap of a thread in MiB; Node's default when absent. */
  readonly maxHeapMib?: number | undefined;
  /** Called when there is room for another job. */
  readonly onRoom: () => void;
  /** Called with the reason when a thread has died. */
  readonly onThreadLost: (error: unknown) => void;
  /** Called when a job has ended. */
  readonly onUsed?: ((used: JobCost) => void) | undefined;
}

/** What a job took of a pool. */
export interface JobCost {
  /** Empty for jobs that run on nobody's account. */
  readonly tenant: string;
  readonly queueMs: number;
  /** CPU time of its thread; 0 where a thread runs several jobs at a time. */
  readonly cpuMs: number;
}

/** Young generation of a thread: with Node's default five threads hold 180 MB more and are no faster. */
const youngMib = 12;
/** Pause before a thread that died before its first job is started again. */
const restartPauseMs = 1000;

/** A place in a pool where a thread runs jobs; one that dies fails its jobs, and another takes its place. */
export class Seat {
  readonly lanes: readonly Lane[];
  /** The lane that it took from last. */
  lastLane = 0;
  readonly #options: SeatOptions;
  /** One shared word per slot: the id of the job in that slot that shall stop. */
  readonly #cancel: Int32Array;
  /** The running jobs by slot. */
  readonly #jobs: (Job | undefined)[];
  /** Undefined before the first job of a lazy pool, and during the pause before a thread is started again. */
  #worker: Worker | undefined;
  /** Resolves when the thread has loaded its modules, or has ended. */
  #begun: Promise<void> = Promise.resolve();
  #isClosed = false;
  #restart: NodeJS.Timeout | undefined;

  constructor(options: SeatOptions) {
    this.#options = options;
    this.lanes = options.lanes;
    this.#cancel = new Int32Array(new SharedArrayBuffer(4 * options.slots));
    this.#jobs = new Array<Job | undefined>(options.slots).fill(undefined);
  }

  get hasThread(): boolean {
    return this.#worker !== undefined;
  }

  /** Whether it has no thread because there was no job for it yet. */
  get isUnused(): boolean {
    return !this.hasThread && this.hasRoom;
  }

  /** Whether a job can be given to it now. */
  get hasRoom(): boolean {
    return this.#restart === undefined && this.#jobs.includes(undefined);
  }

  get jobs(): readonly Job[] {
    return this.#jobs.filter((job) => job !== undefined);
  }

  /** Starts its thread. */
  spawn(): Worker {
    const { url, maxHeapMib } = this.#options;
    const resourceLimits = {
      maxYoungGenerationSizeMb: youngMib,
      ...(maxHeapMib === undefined ? {} : { maxOldGenerationSizeMb: maxHeapMib }),
    };
    // The thread outlives the request that it is started for, so it runs outside of that request's span.
    const worker = within(
      undefined,
      () => new Worker(url, { workerData: { cancel: this.#cancel }, resourceLimits }),
    );
    // An idle pool does not keep the process alive; a running job does.
    worker.unref();
    this.#worker = worker;
    this.#begun = new Promise((resolve) => {
      for (const event of ["message", "error", "exit"]) worker.once(event, () => resolve());
    });
    let hasStarted = false;
    worker.on("message", (message: FromThread) => {
      hasStarted = true;
      this.#receive(worker, message);
    });
    const lost = (error: unknown): void => this.#replace(worker, { error, hasStarted });
    worker.on("error", lost);
    worker.on("exit", (code) => lost(new Error(`a worker thread ended with code ${code}`)));
    return worker;
  }

  /** Runs a job, on a thread that is started if there is none. There has to be room. */
  run(job: Job): void {
    const worker = this.#worker ?? this.spawn();
    const slot = this.#jobs.indexOf(undefined);
    Atomics.store(this.#cancel, slot, 0);
    const { id, name, payload, options, span } = job;
    const message: ToThread = { kind: "job", id, slot, name, payload, trace: span?.context };
    span?.set({ "skald.queue_ms": performance.now() - job.sinceMs });
    try {
      worker.postMessage(message, buffersToMove(options.transfer));
    } catch (error) {
      settle(job, { error });
      return;
    }
    this.#jobs[slot] = job;
    job.queueMs = performance.now() - job.sinceMs;
    worker.ref();
  }

  /** Runs a job on the thread, if there is one, between two others; nobody waits for it. */
  tell(name: string, payload: unknown): void {
    this.#post({ kind: "job", id: noJob, slot: 0, name, payload });
  }

  /** Tells a job to stop, if it runs here. */
  abort(job: Job): void {
    const slot = this.#jobs.indexOf(job);
    if (slot < 0) return;
    Atomics.store(this.#cancel, slot, job.id);
    this.#post({ kind: "cancel", id: job.id });
  }

  /** Ends the thread; returns the jobs that it was running. */
  close(): { readonly jobs: readonly Job[]; readonly ended: Promise<unknown> } {
    this.#isClosed = true;
    clearTimeout(this.#restart);
    return { jobs: this.#clear(), ended: this.#end() };
  }

  /** V8 ends the whole process if a thread is terminated while one of its modules waits for another. */
  async #end(): Promise<void> {
    const worker = this.#worker;
    worker?.ref();
    await this.#begun;
    await worker?.terminate();
  }

  #receive(worker: Worker, message: FromThread): void {
    switch (message.kind) {
      case "ready":
        return;
      case "done":
        this.#finish(worker, message);
        return;
      case "call": {
        const job = this.#jobs.find((candidate) => candidate?.id === message.id);
        if (job !== undefined) void this.#serve(job, worker, message);
        return;
      }
      case "hang_up":
        for (const job of this.#jobs) job?.calls.get(message.call)?.abort(cancelledError());
        return;
      case "span":
        takeSpan(message.span);
    }
  }

  #finish(worker: Worker, outcome: Extract<FromThread, { kind: "done" }>): void {
    const slot = this.#jobs.findIndex((candidate) => candidate?.id === outcome.id);
    const job = this.#jobs[slot];
    if (job === undefined) return;
    this.#jobs[slot] = undefined;
    if (this.#jobs.every((one) => one === undefined)) worker.unref();
    const cpuMs = this.#options.slots === 1 ? outcome.cpuMs : 0;
    const tenant = job.options.share?.tenant ?? "";
    this.#options.onUsed?.({ tenant, queueMs: job.queueMs, cpuMs });
    markWork(`job_${job.name}`, tenant);
    settle(job, "error" in outcome ? { error: reviveError(outcome.error) } : outcome);
    this.#options.onRoom();
  }

  /** Answers what a job asks of this thread. */
  async #serve(
    job: Job,
    worker: Worker,
    { call, name, payload, trace }: Extract<FromThread, { kind: "call" }>,
  ): Promise<void> {
    const stop = new AbortController();
    job.calls.set(call, stop);
    markWork(`job_${job.name}`, job.options.share?.tenant ?? "");
    let transfer: ArrayBuffer[] = [];
    let outcome: Outcome;
    try {
      const serve = job.options.host?.[name];
      if (serve === undefined) throw new Error(`job ${job.name} may not call ${name}`);
      const options = { signal: stop.signal };
      const result = await within(trace, () => serve(payload as never, options));
      outcome = { value: result.value };
      transfer = buffersToMove(result.transfer);
    } catch (error) {
      outcome = { error: describeError(error) };
    }
    job.calls.delete(call);
    try {
      worker.postMessage({ kind: "answer", call, ...outcome } satisfies ToThread, transfer);
    } catch (error) {
      const failure: ToThread = { kind: "answer", call, error: describeError(error) };
      worker.postMessage(failure);
    }
  }

  #replace(dead: Worker, loss: { error: unknown; hasStarted: boolean }): void {
    if (this.#isClosed || this.#worker !== dead) return;
    const jobs = this.#clear();
    this.#worker = undefined;
    this.#options.onThreadLost(loss.error);
    for (const job of jobs) {
      const text = `job ${job.name} lost its thread`;
      settle(job, { error: new SkaldError("internal", text, { cause: loss.error }) });
    }
    if (loss.hasStarted) {
      this.spawn();
      this.#options.onRoom();
    } else this.#spawnLater();
  }

  /** Empties the slots; returns the jobs that were running. */
  #clear(): Job[] {
    const jobs = this.#jobs.filter((job) => job !== undefined);
    this.#jobs.fill(undefined);
    return jobs;
  }

  /** Starts a thread after a pause: one whose module cannot be loaded would otherwise be started in a tight loop. */
  #spawnLater(): void {
    this.#restart = setTimeout(() => {
      this.#restart = undefined;
      this.spawn();
      this.#options.onRoom();
    }, restartPauseMs);
  }

  #post(message: ToThread): void {
    this.#worker?.postMessage(message);
  }
}

/** Lanes take turns, so that none starves another; some have a thread of their own besides. */
export type Lane = "urgent" | "tail" | "decode" | "query" | "seal" | "background";

export interface JobOptions {
  readonly lane: Lane;
  readonly signal?: AbortSignal;
  readonly transfer?: readonly ArrayBuffer[];
  /** For queues that share threads out fairly. */
  readonly share?: JobShare;
  /** What the job may call, by name. */
  readonly host?: Readonly<Record<string, HostFunction>>;
}

/** The account that a job runs on. */
export interface JobShare {
  readonly tenant: string;
  /** Who asks within the tenant, from the outside in; see `X-Service-Actor-Path`. */
  readonly actors: readonly string[];
  /** Work of the whole query that the job is a part of, in bytes. */
  readonly cost: number;
}

export type HostFunction = (
  payload: never,
  options: { readonly signal: AbortSignal },
) => JobResult | Promise<JobResult>;

/** A queue of waiting jobs. */
export interface JobQueue {
  readonly size: number;
  /** May throw when it holds too many. */
  push(job: WaitingJob): void;
  take(): WaitingJob | undefined;
  delete(job: WaitingJob): boolean;
}

export interface WaitingJob {
  readonly name: string;
  readonly options: JobOptions;
}

/** A job of a pool, and the caller that waits for it. */
export interface Job extends WaitingJob {
  readonly id: number;
  readonly payload: unknown;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
  readonly onAbort: () => void;
  /** Running calls of the job by number. */
  readonly calls: Map<number, AbortController>;
  /** Covers waiting and running; undefined outside of a trace. */
  readonly span: Span | undefined;
  readonly sinceMs: number;
  /** Time that it waited. */
  queueMs: number;
}

/** The queue of a lane that has none of its own. */
export class FirstInFirstOut implements JobQueue {
  readonly #jobs = new Set<WaitingJob>();

  get size(): number {
    return this.#jobs.size;
  }

  push(job: WaitingJob): void {
    this.#jobs.add(job);
  }

  take(): WaitingJob | undefined {
    const [job] = this.#jobs;
    if (job !== undefined) this.#jobs.delete(job);
    return job;
  }

  delete(job: WaitingJob): boolean {
    return this.#jobs.delete(job);
  }
}

/** Settles the promise of a job and cancels its calls. */
export function settle(
  job: Job,
  outcome: { readonly value: unknown } | { readonly error: unknown },
): void {
  job.options.signal?.removeEventListener("abort", job.onAbort);
  for (const call of job.calls.values()) call.abort(cancelledError());
  if ("error" in outcome) {
    job.span?.end(outcome.error);
    job.reject(outcome.error);
  } else {
    job.span?.end();
    job.resolve(outcome.value as never);
  }
}
