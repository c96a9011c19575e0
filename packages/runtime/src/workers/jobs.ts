import { readdirSync, readFileSync } from "node:fs";
import { setPriority } from "node:os";
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { type ErrorCode, errorCodeOf, errorStatus, SkaldError } from "@skald/model";
import { JobGarbage } from "../collection.js";
import { messageWithCauses } from "../logger.js";
import { threadCpuMs } from "../stretches.js";
import {
  currentTrace,
  installTracing,
  isTracing,
  type SpanFacts,
  type SpanSink,
  type TraceContext,
  within,
} from "../tracing.js";

export interface JobContext {
  /** Fires when the caller has gone; for jobs that wait. */
  readonly signal: AbortSignal;
  /** True when the caller has gone; it also works within code that lets no signal fire. */
  isCancelled(): boolean;
  /** Throws `cancelled` when the caller has gone; call it between blocks. */
  check(): void;
  /** Calls a function of the pool's process. Rejects if that fails, and when the signal fires. */
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

/** Answers jobs by name on this worker thread; `WorkerPool` is the other end. */
export function serveJobs(handlers: Readonly<Record<string, JobHandler>>): void {
  const port = parentPort;
  if (port === null) throw new Error("serveJobs must run in a worker thread");
  yieldToMainThread();
  const thread = new JobThread(handlers, port, (workerData as { cancel: Int32Array }).cancel);
  port.on("message", (message: ToThread) => thread.receive(message));
  // Sent after the modules are loaded: the thread may be ended from then on.
  setImmediate(() => thread.send({ kind: "ready" }));
}

/** How nice a thread of jobs is: where threads wait for a core, the main thread gets three times as much of it. */
export const jobNiceness = 5;

/** The main thread answers everybody, so jobs leave it a core. Linux has a niceness for each thread, others one for the process. */
function yieldToMainThread(): void {
  makeNice(() => [0]);
}

/**
 * Makes the helper threads of V8 as nice as jobs: all threads share them, and what they clear up is mostly the garbage of jobs. Before
 * Node 24 they have no name, and stay as they are.
 */
export function helpersYield(): void {
  const tasks = "/proc/self/task";
  const isHelper = (task: string) =>
    readFileSync(`${tasks}/${task}/comm`, "latin1") === "V8Worker\n";
  makeNice(() => readdirSync(tasks).filter(isHelper).map(Number));
}

/** Thread 0 is the caller. */
function makeNice(threads: () => readonly number[]): void {
  if (process.platform !== "linux") return;
  try {
    for (const thread of threads()) setPriority(thread, jobNiceness);
  } catch {
    // A sandbox that forbids it costs nothing but patience.
  }
}

interface Call {
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
}

class JobThread {
  readonly #handlers: Readonly<Record<string, JobHandler>>;
  readonly #port: MessagePort;
  /** One shared word per slot: the id of the job in that slot that shall stop. */
  readonly #cancel: Int32Array;
  readonly #running = new Map<number, AbortController>();
  readonly #calls = new Map<number, Call>();
  readonly #garbage = new JobGarbage();
  #nextCall = 1;
  /** Sends the spans of jobs to the thread of the pool, which exports them. */
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
    this.#garbage.onJob();
    if (job.trace !== undefined && !isTracing()) installTracing(this.#spans);
    const beforeMs = threadCpuMs();
    const { outcome, transfer } = await within(job.trace, () => this.#outcomeOf(job, stop.signal));
    this.#running.delete(id);
    const cpuMs = threadCpuMs() - beforeMs;
    try {
      this.send({ kind: "done", id, cpuMs, ...outcome }, transfer);
    } catch (error) {
      const sent = withoutDetail(describeError(error));
      this.send({ kind: "done", id, cpuMs, error: sent });
    }
    if (this.#running.size === 0) this.#garbage.onIdle();
  }

  async #outcomeOf(
    { id, slot, name, payload }: Extract<ToThread, { kind: "job" }>,
    signal: AbortSignal,
  ): Promise<{ outcome: Outcome; transfer: ArrayBuffer[] }> {
    const isCancelled = () => id !== noJob && Atomics.load(this.#cancel, slot) === id;
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
      // The thread may have been busy with another job since this one was sent.
      context.check();
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

/** The id of a job that nobody waits for, and nobody cancels. */
export const noJob = 0;

/** A message of a pool to a thread: a job, the cancellation of one, or the answer to a call of a job. */
export type ToThread =
  | {
      readonly kind: "job";
      readonly id: number;
      /** The shared word of the thread that says when this job shall stop. */
      readonly slot: number;
      readonly name: string;
      readonly payload: unknown;
      /** The span that the job is. */
      readonly trace?: TraceContext | undefined;
    }
  | { readonly kind: "cancel"; readonly id: number }
  | ({ readonly kind: "answer"; readonly call: number } & Outcome);

/**
 * A message of a thread to its pool: it can take jobs, a job has ended, a job calls a function of the pool's process or
 * gives that call up, or a span has ended.
 */
export type FromThread =
  | { readonly kind: "ready" }
  | ({
      readonly kind: "done";
      readonly id: number;
      /** CPU time of the thread since the job began. */
      readonly cpuMs: number;
    } & Outcome)
  | {
      readonly kind: "call";
      readonly id: number;
      readonly call: number;
      readonly name: string;
      readonly payload: unknown;
      /** The span within which the job calls. */
      readonly trace?: TraceContext | undefined;
    }
  | { readonly kind: "hang_up"; readonly call: number }
  | { readonly kind: "span"; readonly span: SpanFacts };

export type Outcome = { readonly value: unknown } | { readonly error: SentError };

/** An error as plain data. */
export interface SentError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly status: number;
  readonly detail?: unknown;
  readonly retryAfterSeconds?: number;
  /** The stack of an unexpected error; for a `SkaldError` the messages of its causes. */
  readonly stack?: string;
}

export function describeError(error: unknown): SentError {
  if (error instanceof SkaldError) {
    const { code, message, status, detail, retryAfterSeconds } = error;
    return {
      ...{ code, message, status },
      ...(detail === undefined ? {} : { detail }),
      ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
      ...(error.cause === undefined ? {} : { stack: messageWithCauses(error.cause) }),
    };
  }
  const message = error instanceof Error ? error.message : String(error);
  const stack = error instanceof Error ? error.stack : undefined;
  const code = errorCodeOf(error);
  const fault = { code, message, status: errorStatus[code] };
  return stack === undefined ? fault : { ...fault, stack };
}

function withoutDetail({ detail: _, ...error }: SentError): SentError {
  return error;
}

/** The sent stack becomes the cause, so that it reaches the log but not the client. */
export function reviveError({ code, message, stack, ...facts }: SentError): SkaldError {
  const cause = stack === undefined ? {} : { cause: new Error(stack) };
  return new SkaldError(code, message, { ...facts, ...cause });
}

export function cancelledError(): SkaldError {
  return new SkaldError("cancelled", "the request was cancelled by the client");
}

/** Each buffer once; empty buffers are shared constants, which must not be moved away. */
export function buffersToMove(transfer: readonly ArrayBuffer[] = []): ArrayBuffer[] {
  return [...new Set(transfer.filter((buffer) => buffer.byteLength > 0))];
}
