import { Worker } from "node:worker_threads";
import { SkaldError } from "@skald/model";
import type { JobError, JobReply, JobRequest } from "./jobs.js";

export interface WorkerPoolOptions {
  /** Module whose top level calls `serveJobs`. */
  readonly url: URL;
  readonly size: number;
  /** Jobs that may wait in a lane; one more is refused as unavailable. */
  readonly maxQueued: number;
  /** Told of each thread that died; it is replaced. */
  readonly onThreadLost?: (error: unknown) => void;
}

export interface JobOptions {
  /** Interactive jobs (queries) and background jobs (sealing) take turns, so that neither starves the other. */
  readonly lane: Lane;
  readonly signal?: AbortSignal;
  readonly transfer?: readonly ArrayBuffer[];
}

type Lane = "interactive" | "background";

interface Job {
  readonly id: number;
  readonly name: string;
  readonly payload: unknown;
  readonly options: JobOptions;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
  readonly onAbort: () => void;
}

interface Seat {
  /** Undefined while a thread that could not start is waited for. */
  worker: Worker | undefined;
  /** One shared word: the id of the running job that shall stop. */
  readonly cancel: Int32Array;
  job: Job | undefined;
}

/** Job ids go through a shared 32-bit word. */
const maxId = 2 ** 31 - 1;
/** Pause before a thread that died before its first job is started again. */
const restartPauseMs = 1000;

/**
 * A fixed set of threads, each running one job at a time to its end. A job's payload is structured-cloned, which
 * costs 10-70 us, so a job should be 4-16 MiB of work. Aborting a waiting job drops it; aborting a running one sets
 * a shared flag that the job looks at between blocks. A thread that dies fails its job and is replaced.
 */
export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  readonly #seats: Seat[] = [];
  /** Waiting jobs, oldest first. */
  readonly #lanes: Record<Lane, Set<Job>> = { interactive: new Set(), background: new Set() };
  readonly #restarts = new Set<NodeJS.Timeout>();
  #lastLane: Lane = "background";
  #nextId = 1;
  #closed = false;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    for (let i = 0; i < options.size; i++) {
      const cancel = new Int32Array(new SharedArrayBuffer(4));
      const seat: Seat = { worker: undefined, cancel, job: undefined };
      this.#spawn(seat);
      this.#seats.push(seat);
    }
  }

  get size(): number {
    return this.#options.size;
  }

  /** Runs a job on the next free thread. Rejects with the job's error, `cancelled`, or `unavailable`. */
  run<T>(name: string, payload: unknown, options: JobOptions): Promise<T> {
    if (this.#closed) return Promise.reject(closed());
    if (options.signal?.aborted === true) return Promise.reject(cancelled());
    const lane = this.#lanes[options.lane];
    if (lane.size >= this.#options.maxQueued) {
      return Promise.reject(
        new SkaldError("unavailable", `more than ${this.#options.maxQueued} jobs are waiting`),
      );
    }
    return new Promise<T>((resolve, reject) => {
      const id = this.#nextId;
      this.#nextId = id === maxId ? 1 : id + 1;
      const onAbort = (): void => this.#abort(job);
      const job: Job = { id, name, payload, options, resolve, reject, onAbort };
      options.signal?.addEventListener("abort", onAbort, { once: true });
      lane.add(job);
      this.#dispatch();
    });
  }

  /** Stops all threads; waiting and running jobs are rejected. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const timer of this.#restarts) clearTimeout(timer);
    const jobs = [...this.#lanes.interactive, ...this.#lanes.background];
    for (const lane of Object.values(this.#lanes)) lane.clear();
    for (const seat of this.#seats) {
      if (seat.job !== undefined) jobs.push(seat.job);
      seat.job = undefined;
    }
    for (const job of jobs) settle(job, () => job.reject(closed()));
    await Promise.all(this.#seats.map((seat) => seat.worker?.terminate()));
  }

  #dispatch(): void {
    for (const seat of this.#seats) {
      while (seat.worker !== undefined && seat.job === undefined) {
        const job = this.#take();
        if (job === undefined) return;
        this.#assign(seat, seat.worker, job);
      }
    }
  }

  #assign(seat: Seat, worker: Worker, job: Job): void {
    Atomics.store(seat.cancel, 0, 0);
    const request: JobRequest = { id: job.id, name: job.name, payload: job.payload };
    try {
      worker.postMessage(request, [...(job.options.transfer ?? [])]);
    } catch (error) {
      settle(job, () => job.reject(error));
      return;
    }
    seat.job = job;
    worker.ref();
  }

  #take(): Job | undefined {
    const other = this.#lastLane === "interactive" ? "background" : "interactive";
    const lane = this.#lanes[other].size > 0 ? other : this.#lastLane;
    const [job] = this.#lanes[lane];
    if (job === undefined) return undefined;
    this.#lastLane = lane;
    this.#lanes[lane].delete(job);
    return job;
  }

  #abort(job: Job): void {
    if (this.#lanes[job.options.lane].delete(job)) {
      job.reject(cancelled());
      return;
    }
    const seat = this.#seats.find((candidate) => candidate.job === job);
    if (seat !== undefined) Atomics.store(seat.cancel, 0, job.id);
  }

  #spawn(seat: Seat): void {
    const worker = new Worker(this.#options.url, { workerData: { cancel: seat.cancel } });
    // An idle pool does not keep the process alive; a running job does.
    worker.unref();
    seat.worker = worker;
    let hasStarted = false;
    worker.on("message", (reply: JobReply | "ready") => {
      hasStarted = true;
      if (reply !== "ready") this.#answer(seat, worker, reply);
    });
    const lost = (error: unknown): void => this.#replace(seat, worker, { error, hasStarted });
    worker.on("error", lost);
    worker.on("exit", (code) => lost(new Error(`a worker thread ended with code ${code}`)));
  }

  #answer(seat: Seat, worker: Worker, reply: JobReply): void {
    const job = seat.job;
    if (job === undefined || job.id !== reply.id) return;
    seat.job = undefined;
    worker.unref();
    if ("error" in reply) settle(job, () => job.reject(revive(reply.error)));
    else settle(job, () => job.resolve(reply.value as never));
    this.#dispatch();
  }

  #replace(seat: Seat, dead: Worker, loss: { error: unknown; hasStarted: boolean }): void {
    if (this.#closed || seat.worker !== dead) return;
    const job = seat.job;
    seat.job = undefined;
    seat.worker = undefined;
    this.#options.onThreadLost?.(loss.error);
    if (job !== undefined) {
      const text = `job ${job.name} lost its thread`;
      settle(job, () => job.reject(new SkaldError("internal", text, { cause: loss.error })));
    }
    if (loss.hasStarted) {
      this.#spawn(seat);
      this.#dispatch();
    } else this.#spawnLater(seat);
  }

  /** A module that cannot be loaded would otherwise be started again and again as fast as it fails. */
  #spawnLater(seat: Seat): void {
    const timer = setTimeout(() => {
      this.#restarts.delete(timer);
      this.#spawn(seat);
      this.#dispatch();
    }, restartPauseMs);
    this.#restarts.add(timer);
  }
}

function settle(job: Job, finish: () => void): void {
  job.options.signal?.removeEventListener("abort", job.onAbort);
  finish();
}

function cancelled(): SkaldError {
  return new SkaldError("cancelled", "the request was cancelled by the client");
}

function closed(): SkaldError {
  return new SkaldError("unavailable", "the worker pool is closed");
}

/** The stack of a fault is its cause, so that it reaches the log and not the client. */
function revive({ code, message, status, detail, stack }: JobError): SkaldError {
  const cause = stack === undefined ? {} : { cause: new Error(stack) };
  return new SkaldError(code, message, { status, detail, ...cause });
}
