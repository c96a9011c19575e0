import type { HeldRows } from "@skald/contracts";
import type { HostFunction, MemoryBudget, WorkerPool } from "@skald/runtime";
import { urgentBytes } from "@skald/scan";
import {
  type MovedOn,
  type QuerierJob,
  type QuerierServices,
  querierHost,
} from "./thread-querier.js";

export interface QueryLanesOptions {
  readonly pool: Pick<WorkerPool, "run" | "resume">;
  /** What all queries may hold together. */
  readonly memory: MemoryBudget;
  /** What queriers ask; absent where queriers of other processes answer. */
  readonly services?: QuerierServices;
  /** What jobs may call besides. */
  readonly host: Readonly<Record<string, HostFunction>>;
  /** Whether rows of a tenant were deleted that may still be stored. */
  readonly hidesRows: (tenant: string) => boolean;
  /** Changes with every delete request of a tenant, and with what becomes of it. */
  readonly deletesOf?: (tenant: string) => string;
  /** Scans that one query runs at the same time. */
  readonly threads: number;
}

/** Who asks, and what their job may call. */
export interface LaneOptions {
  readonly tenants: readonly string[];
  readonly actors: readonly string[];
  readonly host?: Readonly<Record<string, HostFunction>>;
  readonly signal: AbortSignal;
}

/**
 * Places queries on threads by what they cost. Each begins on the thread that serves many small ones at a time; one that
 * turns out to be large goes on, with what was found for it, on a thread of its own, in its tenant's turn.
 */
export class QueryLanes {
  readonly #options: QueryLanesOptions;
  readonly #hostOf: ReturnType<typeof querierHost>;

  constructor(options: QueryLanesOptions) {
    this.#options = options;
    this.#hostOf = options.services === undefined ? () => ({}) : querierHost(options.services);
  }

  /** Whether queriers of other processes answer, so that this one only plans and encodes. */
  get isElsewhere(): boolean {
    return this.#options.services === undefined;
  }

  /** Runs a job by its name. `payload` and what makes a querier go to the thread together; resolves with its reply. */
  async run<Reply extends { readonly kind: string }>(
    name: string,
    payload: object,
    options: LaneOptions,
  ): Promise<Reply> {
    const { tenants } = options;
    const { threads, hidesRows, deletesOf = () => "" } = this.#options;
    const deletes = tenants.map((tenant) => [tenant, deletesOf(tenant)] as const);
    const job = {
      ...{ ...payload, threads, hidesRows: tenants.some(hidesRows) },
      deletes: new Map(deletes.filter(([, text]) => text !== "")),
    };
    const views: string[] = [];
    try {
      const small = { ...job, maxCost: urgentBytes };
      const reply = await this.#run<Reply | MovedOn>(name, small, options, views);
      if (reply.kind !== "moved_on") return reply as Reply;
      const { found, more } = reply as MovedOn;
      return await this.#run(name, { ...job, ...more, found }, options, views);
    } finally {
      this.#release(views);
    }
  }

  async #run<Reply>(
    name: string,
    asked: Omit<QuerierJob, "memory">,
    { tenants, actors, host, signal }: LaneOptions,
    views: string[],
  ): Promise<Reply> {
    const { pool, memory, host: shared } = this.#options;
    const isSmall = asked.maxCost !== undefined;
    const job: QuerierJob = { ...asked, memory: memory.open({ mayWait: !isSmall }) };
    const share = { tenant: tenants.join("|"), actors, cost: asked.found?.cost ?? 0 };
    try {
      return await pool.run<Reply>(name, job, {
        ...{ lane: isSmall ? "urgent" : "query", share, signal },
        host: { ...shared, ...this.#hostOf((view) => views.push(view)), ...host },
      });
    } finally {
      memory.close(job.memory);
      // Others may have waited for it.
      pool.resume();
    }
  }

  /** Gives views back; it does not matter when that fails, because ingesters forget them in time. */
  #release(views: readonly string[]): void {
    const ingester: HeldRows | undefined = this.#options.services?.ingester;
    const { signal } = new AbortController();
    for (const view of views) ingester?.release(view, { signal }).catch(() => undefined);
  }
}
