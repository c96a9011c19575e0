import type { Span } from "../tracing/tracing.js";
import type { JobResult } from "./jobs.js";
import { cancelledError } from "./messages.js";

/** Lanes take turns, so that none starves another; urgent jobs have a thread of their own besides. */
export type Lane = "urgent" | "query" | "background";

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

/** A job that was given to a pool, with who waits for it. */
export interface Job extends WaitingJob {
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

/** Ends what a job waits for; its calls end with it. */
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
