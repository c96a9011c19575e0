import type { CallOptions, ScheduledCall } from "@skald/contracts";
import type { HostFunction, JobShare, MemoryBudget, WorkerPool } from "@skald/runtime";
import { beginServed, isTracing, parseTraceparent, runSpan } from "@skald/runtime/tracing";
import { urgentBytes } from "@skald/scan";
import { type CallJob, type CallReply, deletesOfAll } from "./query-job.js";

export interface CallThreadsOptions {
  readonly pool: Pick<WorkerPool, "run" | "resume">;
  /** What all queries may hold together. */
  readonly memory: MemoryBudget;
  readonly host: Readonly<Record<string, HostFunction>>;
  /** Whether rows of a tenant were deleted that may still be stored. */
  readonly hidesRows: (tenant: string) => boolean;
  /** Changes with every delete request of a tenant, and with what becomes of it. */
  readonly deletesOf?: (tenant: string) => string;
  /** Scans that one query runs at the same time. */
  readonly threads: number;
}

/**
 * Answers calls that were taken from a scheduler, on query threads: what reads little on the one that serves many such
 * calls at a time, what reads much on a thread of its own.
 */
export class CallThreads {
  readonly #options: CallThreadsOptions;

  constructor(options: CallThreadsOptions) {
    this.#options = options;
  }

  /** Answers a call, in the trace of whoever asked. */
  answer(call: ScheduledCall, options: CallOptions): Promise<Uint8Array> {
    const parent = isTracing() ? parseTraceparent(call.traceparent, call.tracestate) : undefined;
    if (parent === undefined) return this.#answer(call, options);
    const attributes = { tenant: call.tenant };
    const span = beginServed(`scheduled ${call.method}`, { attributes }, parent);
    return runSpan(span, () => this.#answer(call, options));
  }

  async #answer(call: ScheduledCall, { signal }: CallOptions): Promise<Uint8Array> {
    const { threads, hidesRows, deletesOf } = this.#options;
    const { tenant, actors } = call;
    const tenants = tenant.split("|");
    const deletes = deletesOfAll(tenants, deletesOf);
    const job = { call, threads, hidesRows: tenants.some(hidesRows), deletes };
    const share = { tenant, actors };
    const small = await this.#run({ ...job, maxCost: urgentBytes }, { ...share, cost: 0 }, signal);
    if (small.kind === "answer") return small.body;
    const large = await this.#run(job, { ...share, cost: small.cost }, signal);
    if (large.kind === "answer") return large.body;
    throw new Error("a call without a bound was too heavy");
  }

  async #run(
    asked: Omit<CallJob, "memory">,
    share: JobShare,
    signal: AbortSignal,
  ): Promise<CallReply> {
    const { pool, memory, host } = this.#options;
    const isSmall = asked.maxCost !== undefined;
    const job: CallJob = { ...asked, memory: memory.open({ mayWait: !isSmall }) };
    const lane = isSmall ? "urgent" : "query";
    try {
      return await pool.run<CallReply>("call", job, { lane, share, host, signal });
    } finally {
      memory.close(job.memory);
      // Others may have waited for it.
      pool.resume();
    }
  }
}
