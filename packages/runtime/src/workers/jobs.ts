import { getHeapStatistics } from "node:v8";
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import {
  currentTrace,
  installTracing,
  isTracing,
  type SpanSink,
  within,
} from "../tracing/tracing.js";
import {
  buffersToMove,
  cancelledError,
  describeError,
  type FromThread,
  type Outcome,
  reviveError,
  type ToThread,
  withoutDetail,
} from "./messages.js";

export interface JobContext {
  /** Fires when the caller has gone; for jobs that wait. */
  readonly signal: AbortSignal;
  /** True when the caller has gone, also in the middle of work that lets no signal fire. */
  isCancelled(): boolean;
  /** Throws `cancelled` when the caller has gone; call it between blocks. */
  check(): void;
  /** Asks the process of the pool for something. Rejects as that does, and when the signal fires. */
  call<T>(name: string, payload: unknown, options?: CallingOptions): Promise<T>;
}

export interface CallingOptions {
  readonly signal?: AbortSignal;
  readonly transfer?: readonly ArrayBuffer[];
}

/** A result with the buffers that move to the caller instead of being copied. */
export interface JobResult {
  readonly value: unknown;
  readonly transfer?: readonly ArrayBuffer[];
}

export type JobHandler = (payload: never, context: JobContext) => JobResult | Promise<JobResult>;

/** The other end of `WorkerPool`: answers jobs by name on this worker thread. */
export function serveJobs(handlers: Readonly<Record<string, JobHandler>>): void {
  const port = parentPort;
  if (port === null) throw new Error("serveJobs must run in a worker thread");
  const thread = new JobThread(handlers, port, (workerData as { cancel: Int32Array }).cancel);
  port.on("message", (message: ToThread) => thread.receive(message));
  // Behind the loading of modules: a thread may be ended from then on.
  setImmediate(() => thread.send({ kind: "ready" }));
}

/** Memory of this thread, garbage included. */
function heldBytes(): number {
  const { total_heap_size, external_memory } = getHeapStatistics();
  return total_heap_size + external_memory;
}

interface Call {
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
}

class JobThread {
  readonly #handlers: Readonly<Record<string, JobHandler>>;
  readonly #port: MessagePort;
  /** Words of shared memory by slot: the id of the job there that shall stop. */
  readonly #cancel: Int32Array;
  readonly #running = new Map<number, AbortController>();
  readonly #calls = new Map<number, Call>();
  #nextCall = 1;
  /** Spans of jobs end here and are sent by the thread of the pool; there are none before it gives a job one. */
  readonly #spans: SpanSink = {
    take: (span) => this.send({ kind: "span", span }),
    isSampled: () => false,
  };

  constructor(
    handlers: Readonly<Record<string, JobHandler>>,
    port: MessagePort,
    cancel: Int32Array,
  ) {
    this.#handlers = handlers;
    this.#port = port;
    this.#cancel = cancel;
  }

  receive(message: ToThread): void {
    switch (message.kind) {
      case "job":
        void this.#run(message);
        return;
      case "cancel":
        this.#running.get(message.id)?.abort(cancelledError());
        return;
      case "answer": {
        const call = this.#calls.get(message.call);
        this.#calls.delete(message.call);
        if ("error" in message) call?.reject(reviveError(message.error));
        else call?.resolve(message.value as never);
      }
    }
  }

  send(message: FromThread, transfer: ArrayBuffer[] = []): void {
    this.#port.postMessage(message, transfer);
  }

  async #run(job: Extract<ToThread, { kind: "job" }>): Promise<void> {
    const { id } = job;
    const stop = new AbortController();
    this.#running.set(id, stop);
    if (job.trace !== undefined && !isTracing()) installTracing(this.#spans);
    const { outcome, transfer } = await within(job.trace, () => this.#outcomeOf(job, stop.signal));
    this.#running.delete(id);
    try {
      this.send({ kind: "done", id, heldBytes: heldBytes(), ...outcome }, transfer);
    } catch (error) {
      const sent = withoutDetail(describeError(error));
      this.send({ kind: "done", id, heldBytes: heldBytes(), error: sent });
    }
  }

  async #outcomeOf(
    { id, slot, name, payload }: Extract<ToThread, { kind: "job" }>,
    signal: AbortSignal,
  ): Promise<{ outcome: Outcome; transfer: ArrayBuffer[] }> {
    const isCancelled = () => Atomics.load(this.#cancel, slot) === id;
    const context: JobContext = {
      signal,
      isCancelled,
      check: () => {
        if (isCancelled()) throw cancelledError();
      },
      call: (called, argument, options) => this.#call(id, called, argument, options),
    };
    try {
      const handler = this.#handlers[name];
      if (handler === undefined) throw new Error(`no handler for job ${name}`);
      const { value, transfer } = await handler(payload as never, context);
      return { outcome: { value }, transfer: buffersToMove(transfer) };
    } catch (error) {
      return { outcome: { error: describeError(error) }, transfer: [] };
    }
  }

  #call<T>(
    id: number,
    name: string,
    payload: unknown,
    { signal, transfer }: CallingOptions = {},
  ): Promise<T> {
    if (signal?.aborted === true) return Promise.reject(signal.reason);
    const call = this.#nextCall++;
    const answer = new Promise<T>((resolve, reject) => {
      this.#calls.set(call, { resolve, reject });
      const trace = currentTrace();
      this.send({ kind: "call", id, call, name, payload, trace }, buffersToMove(transfer));
    });
    if (signal === undefined) return answer;
    const hangUp = () => {
      const waiting = this.#calls.get(call);
      if (waiting === undefined) return;
      this.#calls.delete(call);
      this.send({ kind: "hang_up", call });
      waiting.reject(signal.reason);
    };
    signal.addEventListener("abort", hangUp, { once: true });
    return answer.finally(() => signal.removeEventListener("abort", hangUp));
  }
}
