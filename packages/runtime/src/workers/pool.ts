import { SkaldError } from "@skald/model";
import { beginPart } from "../tracing.js";
import { cancelledError } from "./jobs.js";
import {
  FirstInFirstOut,
  type Job,
  type JobCost,
  type JobOptions,
  type JobQueue,
  type Lane,
  Seat,
  settle,
} from "./seat.js";

export interface WorkerPoolOptions {
  /** Module whose top level calls `serveJobs`. */
  readonly url: URL;
  /** Threads that take jobs of every lane, one at a time. */
  readonly size: number;
  /** Urgent jobs that one more thread runs at a time; they never wait for others. 0: no such thread. */
  readonly urgentJobs?: number;
  /** Lanes that have one more thread each, which takes one job at a time. */
  readonly ownThreads?: readonly Lane[];
  /** Where there are several threads, the first one takes no jobs of these lanes, which may take long. */
  readonly longLanes?: readonly Lane[];
  /** The first thread takes jobs of these lanes only if the others are busy and no query came lately. */
  readonly spareLanes?: readonly Lane[];
  /** Jobs that may wait in a lane; one more is refused as unavailable. */
  readonly maxQueued: number;
  /** Queues that choose the next job of a lane; first in, first out when absent. */
  readonly queues?: Partial<Record<Lane, JobQueue>>;
  /** Starts each thread when there is a job for it that no other can take. */
  readonly lazy?: boolean;
  /** Heap of a thread in MiB; one that needs more dies, and its job with it. Node's default when absent. */
  readonly maxHeapMib?: number;
  /** Called when a thread has died; it is replaced. */
  readonly onThreadLost?: (error: unknown) => void;
  /** Called when a job has ended, with what it took. */
  readonly onUsed?: (used: JobCost) => void;
}

/** The first thread takes no job of `spareLanes` for this long after a query, because another query may follow. */
const quietMs = 2000;

const lanes: readonly Lane[] = ["urgent", "tail", "decode", "query", "seal", "background"];
/** Job ids go through a shared 32-bit word. */
const maxId = 2 ** 31 - 1;

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
  /** Where there are several threads, this one takes no long jobs, so that queries find it free. */
  readonly #first: Seat;
  #lastQueryMs = Number.NEGATIVE_INFINITY;
  #nextId = 1;
  #closed = false;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    const { queues = {}, urgentJobs = 0, ownThreads = [] } = options;
    const { longLanes = [], spareLanes = [] } = options;
    this.#queues = {
      urgent: queues.urgent ?? new FirstInFirstOut(),
      tail: queues.tail ?? new FirstInFirstOut(),
      decode: queues.decode ?? new FirstInFirstOut(),
      query: queues.query ?? new FirstInFirstOut(),
      seal: queues.seal ?? new FirstInFirstOut(),
      background: queues.background ?? new FirstInFirstOut(),
    };
    if (urgentJobs > 0) this.#addSeat(["urgent"], urgentJobs);
    for (const lane of ownThreads) this.#addSeat([lane], 1);
    const others = options.size > 1 ? [...longLanes, ...spareLanes] : [];
    this.#first = this.#addSeat(
      lanes.filter((lane) => !others.includes(lane)),
      1,
    );
    for (let i = 1; i < options.size; i++) this.#addSeat(lanes, 1);
  }

  get size(): number {
    return this.#options.size;
  }

  /** Jobs that run or wait, without those of the lanes `seal` and `background`. */
  get busy(): number {
    const running = this.#seats.flatMap(({ jobs }) => jobs);
    const { urgent, tail, decode, query, ...own } = this.#queues;
    const others = running.filter(({ options }) => !(options.lane in own));
    return others.length + urgent.size + tail.size + decode.size + query.size;
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
      const about = { span: beginPart(`job ${name}`), sinceMs: performance.now(), queueMs: 0 };
      const job: Job = { id, name, payload, options, resolve, reject, onAbort, calls, ...about };
      queue.push(job);
      if (options.lane === "query") this.#lastQueryMs = about.sinceMs;
      options.signal?.addEventListener("abort", onAbort, { once: true });
      this.#dispatch();
    });
  }

  /** Runs a job on every running thread, between two others; nobody waits for it. */
  broadcast(name: string, payload: unknown): void {
    for (const seat of this.#seats) seat.tell(name, payload);
  }

  /**
   * Starts a thread of a lazy pool before there is a job for it: with the first call that of urgent jobs, with the second one for
   * jobs of every lane. False when it has these.
   */
  warm(): boolean {
    if (this.#closed) return false;
    const urgent = this.#seats.find(({ lanes }) => lanes[0] === "urgent");
    const common = this.#seats.find(({ lanes }) => lanes.length > 1);
    const seat = [urgent, common].find((one) => one?.isUnused);
    seat?.spawn();
    return seat !== undefined;
  }

  /** Starts jobs that a queue held back until now. */
  resume(): void {
    if (!this.#closed) this.#dispatch();
  }

  /** Stops all threads; waiting and running jobs are rejected. */
  async close(): Promise<void> {
    this.#closed = true;
    const jobs: Job[] = [];
    for (const queue of Object.values(this.#queues)) {
      for (let job = queue.take(); job !== undefined; job = queue.take()) jobs.push(job as Job);
    }
    const seats = this.#seats.map((seat) => seat.close());
    for (const job of [...jobs, ...seats.flatMap((seat) => seat.jobs)])
      settle(job, { error: closed() });
    await Promise.all(seats.map(({ ended }) => ended));
  }

  #addSeat(seatLanes: readonly Lane[], slots: number): Seat {
    const { url, maxHeapMib, lazy = false } = this.#options;
    const seat = new Seat({
      ...{ url, maxHeapMib, lanes: seatLanes, slots, onUsed: this.#options.onUsed },
      onRoom: () => this.resume(),
      onThreadLost: (error) => this.#options.onThreadLost?.(error),
    });
    if (!lazy) seat.spawn();
    this.#seats.push(seat);
    return seat;
  }

  #dispatch(): void {
    // Threads that run come first.
    for (const seat of this.#seats) if (seat.hasThread) this.#fill(seat);
    for (const seat of this.#seats) if (!seat.hasThread) this.#fill(seat);
    if (performance.now() - this.#lastQueryMs > quietMs) this.#fillSpare();
  }

  /** Gives the first thread a job that no other has room for. */
  #fillSpare(): void {
    for (const lane of this.#options.spareLanes ?? []) {
      const job = this.#first.hasRoom ? this.#queues[lane].take() : undefined;
      if (job !== undefined) this.#first.run(job as Job);
    }
  }

  #fill(seat: Seat): void {
    while (seat.hasRoom) {
      const job = this.#take(seat);
      if (job === undefined) return;
      seat.run(job);
    }
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
    for (const seat of this.#seats) seat.abort(job);
  }
}

function closed(): SkaldError {
  return new SkaldError("unavailable", "the worker pool is closed");
}
