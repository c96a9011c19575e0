import { Worker } from "node:worker_threads";
import { SkaldError } from "@skald/model";
import { takeSpan, within } from "../tracing/tracing.js";
import {
  buffersToMove,
  cancelledError,
  describeError,
  type FromThread,
  type Outcome,
  reviveError,
  type ToThread,
} from "./messages.js";
import { type Job, type Lane, settle } from "./waiting-jobs.js";

export interface SeatOptions {
  /** Module whose top level calls `serveJobs`. */
  readonly url: URL;
  /** Lanes whose jobs it takes, in turns. */
  readonly lanes: readonly Lane[];
  /** Jobs that run there at a time. */
  readonly slots: number;
  /** Heap of a thread in MiB; Node's default when absent. */
  readonly maxHeapMib?: number | undefined;
  /** Memory that an idle thread keeps, in MiB; see `WorkerPoolOptions`. */
  readonly maxKeptMib?: number | undefined;
  /** Told when there is room for another job, or none to be had any more. */
  readonly onRoom: () => void;
  /** Told of each thread that died. */
  readonly onThreadLost: (error: unknown) => void;
}

/** The id of what nobody waits for. */
const noJob = 0;
/** Young generation of a thread: with Node's default five threads hold 180 MB more and are no faster. */
const youngMib = 12;
/** When a thread with too much memory is replaced: at once with so many times as much, or after so long without a job. */
const manyTimes = 4;
const idleMs = 5000;
/** Pause before a thread that died before its first job is started again. */
const restartPauseMs = 1000;

/** A place in a pool where a thread runs jobs; one that dies fails its jobs, and another takes its place. */
export class Seat {
  readonly lanes: readonly Lane[];
  /** The lane that it took from last. */
  lastLane = 0;
  readonly #options: SeatOptions;
  /** A shared word a slot: the id of the job there that shall stop. */
  readonly #cancel: Int32Array;
  /** The jobs that run there, by slot. */
  readonly #jobs: (Job | undefined)[];
  /** Undefined before its first job, in a lazy pool, and while a thread that could not start is waited for. */
  #worker: Worker | undefined;
  /** Resolves when the thread has loaded its modules, or has ended. */
  #begun: Promise<void> = Promise.resolve();
  #isClosed = false;
  /** Ends the thread, unless a job comes before. */
  #retirement: NodeJS.Timeout | undefined;
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
    // It outlives the request that it is started for.
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
    clearTimeout(this.#retirement);
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
    worker.ref();
  }

  /** Has the thread, if there is one, run a job between two others; nobody hears of its end. */
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

  /** Ends the thread, and gives the jobs that ran there. */
  close(): { readonly jobs: readonly Job[]; readonly ended: Promise<unknown> } {
    this.#isClosed = true;
    clearTimeout(this.#restart);
    return { jobs: this.#clear(), ended: this.#end() };
  }

  /** V8 takes the whole process with a thread that is ended while a module of its waits for another. */
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
    if (this.#jobs.every((one) => one === undefined)) this.#rest(worker, outcome.heldBytes);
    settle(job, "error" in outcome ? { error: reviveError(outcome.error) } : outcome);
    this.#options.onRoom();
  }

  /** What a thread does that has no job. */
  #rest(worker: Worker, heldBytes: number): void {
    worker.unref();
    const { maxKeptMib = Number.POSITIVE_INFINITY } = this.#options;
    const share = heldBytes / (maxKeptMib * 1024 * 1024);
    if (share > 1) this.#retire(worker, share > manyTimes ? 0 : idleMs);
  }

  /** Ends a thread that has no job by then; the next job starts another. */
  #retire(worker: Worker, waitMs: number): void {
    const end = (): void => {
      if (this.#isClosed || this.#worker !== worker) return;
      this.#worker = undefined;
      void worker.terminate();
    };
    if (waitMs === 0) {
      end();
      return;
    }
    this.#retirement = setTimeout(end, waitMs).unref();
  }

  /** Answers what a job asks of this thread. */
  async #serve(
    job: Job,
    worker: Worker,
    { call, name, payload, trace }: Extract<FromThread, { kind: "call" }>,
  ): Promise<void> {
    const stop = new AbortController();
    job.calls.set(call, stop);
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

  /** Takes the running jobs from it. */
  #clear(): Job[] {
    const jobs = this.#jobs.filter((job) => job !== undefined);
    this.#jobs.fill(undefined);
    return jobs;
  }

  /** A module that cannot be loaded would otherwise be started again and again as fast as it fails. */
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
