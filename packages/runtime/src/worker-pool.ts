import { Worker } from "node:worker_threads";
import { type ErrorCode, SkaldError } from "@skald/model";

export interface WorkerPoolOptions {
  /** Module whose top level calls `serveJobs`. */
  readonly url: URL;
  readonly size: number;
  /** Jobs that may wait; one more is refused as unavailable. */
  readonly maxQueued: number;
}

export interface JobOptions {
  /** Interactive jobs (queries) and background jobs (sealing) take turns, so that neither starves the other. */
  readonly lane: "interactive" | "background";
  readonly signal?: AbortSignal;
  readonly transfer?: readonly ArrayBuffer[];
}

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
  worker: Worker;
  /** One shared word: the id of the running job that shall stop. */
  readonly cancel: Int32Array;
  job: Job | undefined;
}

/** What a worker answers; an error crosses the thread as its code and text. */
export type JobReply =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: JobError };

export interface JobError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly status: number;
}

/**
 * A fixed set of threads, each running one job at a time to its end. A job's payload is structured-cloned, which
 * costs 10-70 us, so a job should be 4-16 MiB of work. Aborting a waiting job drops it; aborting a running one sets
 * a shared flag that the job looks at between blocks. A thread that dies fails its job and is replaced.
 */
export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  readonly #seats: Seat[] = [];
  readonly #lanes: Record<JobOptions["lane"], Job[]> = { interactive: [], background: [] };
  #lastLane: JobOptions["lane"] = "background";
  #nextId = 1;
  #closed = false;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    for (let i = 0; i < options.size; i++) this.#seats.push(this.#seat());
  }

  get size(): number {
    return this.#options.size;
  }

  /** Runs a job on the next free thread. Rejects with the job's error, `cancelled`, or `unavailable`. */
  run<T>(name: string, payload: unknown, options: JobOptions): Promise<T> {
    if (this.#closed)
      return Promise.reject(new SkaldError("unavailable", "the worker pool is closed"));
    if (options.signal?.aborted === true) return Promise.reject(cancelled());
    const lane = this.#lanes[options.lane];
    if (lane.length >= this.#options.maxQueued) {
      return Promise.reject(
        new SkaldError("unavailable", `more than ${this.#options.maxQueued} jobs are waiting`),
      );
    }
    return new Promise<T>((resolve, reject) => {
      const id = this.#nextId++;
      const job: Job = {
        id,
        name,
        payload,
        options,
        resolve,
        reject,
        onAbort: () => this.#abort(job),
      };
      options.signal?.addEventListener("abort", job.onAbort, { once: true });
      lane.push(job);
      this.#dispatch();
    });
  }

  /** Stops all threads; waiting and running jobs are rejected. */
  async close(): Promise<void> {
    this.#closed = true;
    const waiting = [...this.#lanes.interactive.splice(0), ...this.#lanes.background.splice(0)];
    for (const job of waiting) settle(job, () => job.reject(cancelled()));
    await Promise.all(this.#seats.map((seat) => seat.worker.terminate()));
    for (const seat of this.#seats) {
      const job = seat.job;
      seat.job = undefined;
      if (job !== undefined) settle(job, () => job.reject(cancelled()));
    }
  }

  #dispatch(): void {
    for (const seat of this.#seats) {
      if (seat.job !== undefined) continue;
      const job = this.#take();
      if (job === undefined) return;
      seat.job = job;
      Atomics.store(seat.cancel, 0, 0);
      seat.worker.ref();
      seat.worker.postMessage({ id: job.id, name: job.name, payload: job.payload }, [
        ...(job.options.transfer ?? []),
      ]);
    }
  }

  #take(): Job | undefined {
    const other = this.#lastLane === "interactive" ? "background" : "interactive";
    const lane = this.#lanes[other].length > 0 ? other : this.#lastLane;
    this.#lastLane = lane;
    return this.#lanes[lane].shift();
  }

  #abort(job: Job): void {
    const lane = this.#lanes[job.options.lane];
    const at = lane.indexOf(job);
    if (at >= 0) {
      lane.splice(at, 1);
      job.reject(cancelled());
      return;
    }
    const seat = this.#seats.find((candidate) => candidate.job === job);
    if (seat !== undefined) Atomics.store(seat.cancel, 0, job.id);
  }

  #seat(): Seat {
    const cancel = new Int32Array(new SharedArrayBuffer(4));
    const seat: Seat = { worker: this.#spawn(cancel), cancel, job: undefined };
    this.#listen(seat);
    return seat;
  }

  #spawn(cancel: Int32Array): Worker {
    const worker = new Worker(this.#options.url, { workerData: { cancel } });
    // An idle pool does not keep the process alive; a running job does.
    worker.unref();
    return worker;
  }

  #listen(seat: Seat): void {
    const { worker } = seat;
    worker.on("message", (reply: JobReply) => this.#answer(seat, reply));
    worker.on("error", (error) => this.#replace(seat, worker, error));
    worker.on("exit", () => this.#replace(seat, worker, new Error("a worker thread ended")));
  }

  #answer(seat: Seat, reply: JobReply): void {
    const job = seat.job;
    if (job === undefined || job.id !== reply.id) return;
    seat.job = undefined;
    seat.worker.unref();
    if ("error" in reply) settle(job, () => job.reject(revive(reply.error)));
    else settle(job, () => job.resolve(reply.value as never));
    this.#dispatch();
  }

  #replace(seat: Seat, dead: Worker, cause: unknown): void {
    if (this.#closed || seat.worker !== dead) return;
    const job = seat.job;
    seat.job = undefined;
    seat.worker = this.#spawn(seat.cancel);
    this.#listen(seat);
    if (job !== undefined) {
      settle(job, () =>
        job.reject(new SkaldError("internal", `job ${job.name} lost its thread`, { cause })),
      );
    }
    this.#dispatch();
  }
}

function settle(job: Job, finish: () => void): void {
  job.options.signal?.removeEventListener("abort", job.onAbort);
  finish();
}

function cancelled(): SkaldError {
  return new SkaldError("cancelled", "the request was cancelled by the client");
}

function revive(error: JobError): SkaldError {
  return new SkaldError(error.code, error.message, { status: error.status });
}
