import { Worker } from "node:worker_threads";
import { SkaldError } from "@skald/model";
import { beginPart, type Span, takeSpan, within } from "../tracing/tracing.js";
import type { JobResult } from "./jobs.js";
import {
  buffersToMove,
  cancelledError,
  describeError,
  type FromThread,
  type Outcome,
  reviveError,
  type ToThread,
} from "./messages.js";

export interface WorkerPoolOptions {
  /** Module whose top level calls `serveJobs`. */
  readonly url: URL;
  /** Threads that take jobs of every lane, one at a time. */
  readonly size: number;
  /** One more thread for urgent jobs only, so many at a time: they never wait for the others. */
  readonly urgentJobs?: number;
  /** Jobs that may wait in a lane; one more is refused as unavailable. */
  readonly maxQueued: number;
  /** Says which job of a lane is next; first in, first out when absent. */
  readonly queues?: Partial<Record<Lane, JobQueue>>;
  /** Starts each thread when there is a job for it that no other can take. */
  readonly lazy?: boolean;
  /** Heap of a thread in MiB; one that needs more dies, and its job with it. Node's default when absent. */
  readonly maxHeapMib?: number;
  /**
   * A thread that has more memory than this when its job ends, in MiB, is replaced: at once, where that is several times as
   * much, else when it had nothing to do for a while. It gives little of it back in time, but a new one is slow at first.
   */
  readonly maxKeptMib?: number;
  /** Told of each thread that died; it is replaced. */
  readonly onThreadLost?: (error: unknown) => void;
}

/** Lanes take turns, so that none starves another; urgent jobs have a thread of their own besides. */
export type Lane = "urgent" | "query" | "background";

const lanes: readonly Lane[] = ["urgent", "query", "background"];

export interface JobOptions {
  readonly lane: Lane;
  readonly signal?: AbortSignal;
  readonly transfer?: readonly ArrayBuffer[];
  /** For queues that share threads out fairly. */
  readonly share?: JobShare;
  /** What the job may call, by name. */
  readonly host?: Readonly<Record<string, HostFunction>>;
}

/** On whose account a job runs. */
export interface JobShare {
  readonly tenant: string;
  /** Who asks within the tenant, from the outside in; see `X-Service-Actor-Path`. */
  readonly actors: readonly string[];
  /** Work of the whole that the job is a part of, in bytes or alike. */
  readonly cost: number;
}

export type HostFunction = (
  payload: never,
  options: { readonly signal: AbortSignal },
) => JobResult | Promise<JobResult>;

/** Jobs that wait. */
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

interface Job extends WaitingJob {
  readonly id: number;
  readonly payload: unknown;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
  readonly onAbort: () => void;
  /** Calls of the job that are under way, by their number. */
  readonly calls: Map<number, AbortController>;
  /** From when it began to wait; absent outside of a trace. */
  readonly span: Span | undefined;
  readonly sinceMs: number;
}

interface Seat {
  readonly lanes: readonly Lane[];
  /** Undefined before its first job, in a lazy pool, and while a thread that could not start is waited for. */
  worker: Worker | undefined;
  isWaiting: boolean;
  /** A shared word a slot: the id of the job there that shall stop. */
  readonly cancel: Int32Array;
  /** The jobs that run there, by slot. */
  readonly jobs: (Job | undefined)[];
  lastLane: number;
  /** Ends the thread, unless a job comes before. */
  retirement: NodeJS.Timeout | undefined;
}

/** Job ids go through a shared 32-bit word. */
const maxId = 2 ** 31 - 1;
/** The id of what nobody waits for. */
const noJob = 0;
/** Young generation of a thread: with Node's default five threads hold 180 MB more and are no faster. */
const youngMib = 12;
/** When a thread with too much memory is replaced: at once with so many times as much, or after so long without a job. */
const manyTimes = 4;
const idleMs = 5000;
/** Pause before a thread that died before its first job is started again. */
const restartPauseMs = 1000;

/**
 * A fixed set of threads. A job's payload is structured-cloned, which costs 10-70 us, so a job should be 4-16 MiB of
 * work; it may call functions of this thread and wait for them. Aborting a waiting job drops it; aborting a running one
 * sets a shared flag that the job looks at between blocks, and fires its signal. A thread that dies fails its jobs and is
 * replaced.
 */
export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  readonly #seats: Seat[] = [];
  readonly #queues: Readonly<Record<Lane, JobQueue>>;
  readonly #restarts = new Set<NodeJS.Timeout>();
  #nextId = 1;
  #closed = false;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    const { queues = {}, urgentJobs = 0 } = options;
    this.#queues = {
      urgent: queues.urgent ?? new FirstInFirstOut(),
      query: queues.query ?? new FirstInFirstOut(),
      background: queues.background ?? new FirstInFirstOut(),
    };
    if (urgentJobs > 0) this.#addSeat(["urgent"], urgentJobs);
    for (let i = 0; i < options.size; i++) this.#addSeat(lanes, 1);
  }

  get size(): number {
    return this.#options.size;
  }

  /** Jobs that run or wait, those of the lane for the background left out. */
  get busy(): number {
    const running = this.#seats.flatMap(({ jobs }) => jobs.filter((job) => job !== undefined));
    const { urgent, query } = this.#queues;
    const others = running.filter(({ options }) => options.lane !== "background");
    return others.length + urgent.size + query.size;
  }

  /** Runs a job on the next free thread. Rejects with the job's error, `cancelled`, or `unavailable`. */
  run<T>(name: string, payload: unknown, options: JobOptions): Promise<T> {
    if (this.#closed) return Promise.reject(closed());
    if (options.signal?.aborted === true) return Promise.reject(cancelledError());
    const queue = this.#queues[options.lane];
    if (queue.size >= this.#options.maxQueued) {
      return Promise.reject(
        new SkaldError("unavailable", `more than ${this.#options.maxQueued} jobs are waiting`),
      );
    }
    return new Promise<T>((resolve, reject) => {
      const id = this.#nextId;
      this.#nextId = id === maxId ? 1 : id + 1;
      const onAbort = (): void => this.#abort(job);
      const calls = new Map<number, AbortController>();
      const about = { span: beginPart(`job ${name}`), sinceMs: performance.now() };
      const job: Job = { id, name, payload, options, resolve, reject, onAbort, calls, ...about };
      queue.push(job);
      options.signal?.addEventListener("abort", onAbort, { once: true });
      this.#dispatch();
    });
  }

  /** Has every thread run a job between two others; nobody hears of its end. Threads that start later know nothing of it. */
  broadcast(name: string, payload: unknown): void {
    const message: ToThread = { kind: "job", id: noJob, slot: 0, name, payload };
    for (const { worker } of this.#seats) worker?.postMessage(message);
  }

  /** Starts jobs that a queue held back before. */
  resume(): void {
    if (!this.#closed) this.#dispatch();
  }

  /** Stops all threads; waiting and running jobs are rejected. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const timer of this.#restarts) clearTimeout(timer);
    const jobs: Job[] = [];
    for (const queue of Object.values(this.#queues)) {
      for (let job = queue.take(); job !== undefined; job = queue.take()) jobs.push(job as Job);
    }
    for (const seat of this.#seats) jobs.push(...this.#clear(seat));
    for (const job of jobs) settle(job, { error: closed() });
    await Promise.all(this.#seats.map((seat) => seat.worker?.terminate()));
  }

  #addSeat(seatLanes: readonly Lane[], slots: number): void {
    const cancel = new Int32Array(new SharedArrayBuffer(4 * slots));
    const jobs = new Array<Job | undefined>(slots).fill(undefined);
    const seat: Seat = {
      ...{ lanes: seatLanes, worker: undefined, isWaiting: false },
      ...{ cancel, jobs, lastLane: 0, retirement: undefined },
    };
    if (this.#options.lazy !== true) this.#spawn(seat);
    this.#seats.push(seat);
  }

  #dispatch(): void {
    // Threads that run come first.
    for (const seat of this.#seats) if (seat.worker !== undefined) this.#fill(seat);
    for (const seat of this.#seats) {
      if (seat.worker === undefined && !seat.isWaiting) this.#fill(seat);
    }
  }

  #fill(seat: Seat): void {
    for (let slot = seat.jobs.indexOf(undefined); slot >= 0; slot = seat.jobs.indexOf(undefined)) {
      const job = this.#take(seat);
      if (job === undefined) return;
      this.#assign(seat, seat.worker ?? this.#spawn(seat), slot, job);
    }
  }

  #assign(seat: Seat, worker: Worker, slot: number, job: Job): void {
    clearTimeout(seat.retirement);
    Atomics.store(seat.cancel, slot, 0);
    const { id, name, payload, options, span } = job;
    const message: ToThread = { kind: "job", id, slot, name, payload, trace: span?.context };
    span?.set({ "skald.queue_ms": performance.now() - job.sinceMs });
    try {
      worker.postMessage(message, buffersToMove(options.transfer));
    } catch (error) {
      settle(job, { error });
      return;
    }
    seat.jobs[slot] = job;
    worker.ref();
  }

  /** The next job for a seat: its lanes take turns. */
  #take(seat: Seat): Job | undefined {
    for (let i = 1; i <= seat.lanes.length; i++) {
      const place = (seat.lastLane + i) % seat.lanes.length;
      const job = this.#queues[seat.lanes[place] as Lane].take();
      if (job === undefined) continue;
      seat.lastLane = place;
      return job as Job;
    }
    return undefined;
  }

  #abort(job: Job): void {
    if (this.#queues[job.options.lane].delete(job)) {
      settle(job, { error: cancelledError() });
      return;
    }
    for (const { jobs, cancel, worker } of this.#seats) {
      const slot = jobs.indexOf(job);
      if (slot < 0) continue;
      Atomics.store(cancel, slot, job.id);
      post(worker, { kind: "cancel", id: job.id });
    }
  }

  #spawn(seat: Seat): Worker {
    const { url, maxHeapMib } = this.#options;
    const resourceLimits = {
      maxYoungGenerationSizeMb: youngMib,
      ...(maxHeapMib === undefined ? {} : { maxOldGenerationSizeMb: maxHeapMib }),
    };
    // It outlives the request that it is started for.
    const worker = within(
      undefined,
      () => new Worker(url, { workerData: { cancel: seat.cancel }, resourceLimits }),
    );
    // An idle pool does not keep the process alive; a running job does.
    worker.unref();
    seat.worker = worker;
    let hasStarted = false;
    worker.on("message", (message: FromThread) => {
      hasStarted = true;
      this.#receive(seat, worker, message);
    });
    const lost = (error: unknown): void => this.#replace(seat, worker, { error, hasStarted });
    worker.on("error", lost);
    worker.on("exit", (code) => lost(new Error(`a worker thread ended with code ${code}`)));
    return worker;
  }

  #receive(seat: Seat, worker: Worker, message: FromThread): void {
    switch (message.kind) {
      case "ready":
        return;
      case "done":
        this.#finish(seat, worker, message);
        return;
      case "call": {
        const job = seat.jobs.find((candidate) => candidate?.id === message.id);
        if (job !== undefined) void this.#serve(job, worker, message);
        return;
      }
      case "hang_up":
        for (const job of seat.jobs) job?.calls.get(message.call)?.abort(cancelledError());
        return;
      case "span":
        takeSpan(message.span);
    }
  }

  #finish(seat: Seat, worker: Worker, outcome: Extract<FromThread, { kind: "done" }>): void {
    const slot = seat.jobs.findIndex((candidate) => candidate?.id === outcome.id);
    const job = seat.jobs[slot];
    if (job === undefined) return;
    seat.jobs[slot] = undefined;
    if (seat.jobs.every((one) => one === undefined)) this.#rest(seat, worker, outcome.heldBytes);
    settle(job, "error" in outcome ? { error: reviveError(outcome.error) } : outcome);
    this.#dispatch();
  }

  /** What a thread does that has no job. */
  #rest(seat: Seat, worker: Worker, heldBytes: number): void {
    worker.unref();
    const { maxKeptMib = Number.POSITIVE_INFINITY } = this.#options;
    const share = heldBytes / (maxKeptMib * 1024 * 1024);
    if (share > 1) this.#retire(seat, worker, share > manyTimes ? 0 : idleMs);
  }

  /** Ends a thread that has no job by then; the next job for its seat starts another. */
  #retire(seat: Seat, worker: Worker, waitMs: number): void {
    const end = (): void => {
      if (this.#closed || seat.worker !== worker) return;
      seat.worker = undefined;
      void worker.terminate();
    };
    if (waitMs === 0) {
      end();
      return;
    }
    seat.retirement = setTimeout(end, waitMs).unref();
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
      post(worker, { kind: "answer", call, error: describeError(error) });
    }
  }

  #replace(seat: Seat, dead: Worker, loss: { error: unknown; hasStarted: boolean }): void {
    if (this.#closed || seat.worker !== dead) return;
    const jobs = this.#clear(seat);
    seat.worker = undefined;
    this.#options.onThreadLost?.(loss.error);
    for (const job of jobs) {
      const text = `job ${job.name} lost its thread`;
      settle(job, { error: new SkaldError("internal", text, { cause: loss.error }) });
    }
    if (loss.hasStarted) {
      this.#spawn(seat);
      this.#dispatch();
    } else this.#spawnLater(seat);
  }

  /** Takes the running jobs from a seat. */
  #clear(seat: Seat): Job[] {
    const jobs = seat.jobs.filter((job) => job !== undefined);
    seat.jobs.fill(undefined);
    return jobs;
  }

  /** A module that cannot be loaded would otherwise be started again and again as fast as it fails. */
  #spawnLater(seat: Seat): void {
    seat.isWaiting = true;
    const timer = setTimeout(() => {
      this.#restarts.delete(timer);
      seat.isWaiting = false;
      this.#spawn(seat);
      this.#dispatch();
    }, restartPauseMs);
    this.#restarts.add(timer);
  }
}

class FirstInFirstOut implements JobQueue {
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

/** Ends what a job waits for; its calls end with it. */
function settle(
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

function post(worker: Worker | undefined, message: ToThread): void {
  worker?.postMessage(message);
}

function closed(): SkaldError {
  return new SkaldError("unavailable", "the worker pool is closed");
}
