import {
  answerScheduled,
  type CallOptions,
  type HeldRows,
  type QueryRequest,
  requestOf,
  type ScheduledCall,
} from "@skald/contracts";
import { isLight } from "@skald/logql";
import { steadyClock } from "@skald/model";
import type { HostFunction, MemoryBudget, WorkerPool } from "@skald/runtime";
import { beginServed, isTracing, parseTraceparent, runSpan } from "@skald/runtime/tracing";
import { urgentBytes } from "@skald/scan";
import { CorruptSegments } from "./find/corrupt-segments.js";
import { lookUp } from "./find/source-finder.js";
import { Querier } from "./querier.js";
import { KnownGrowths } from "./run/cut-tasks.js";
import { ListSizes } from "./run/stream-lists.js";
import {
  type CallReply,
  type MovedOn,
  orMovedOn,
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
  /** Receives each segment that a query of this thread found damaged. */
  readonly onCorrupt?: (segment: string, error: unknown) => void;
}

/** A light query that a job planned and gave back: plain data. */
export interface Planned {
  readonly kind: "planned";
  readonly planned: unknown;
}

/** Runs a planned query on this thread. `tooMuch` ends it with an error, and it goes on elsewhere. */
export type RunHere<Reply> = (
  planned: unknown,
  querier: Querier,
  tooMuch: (bytes: number) => Error,
) => Promise<Reply>;

/** The tenants and actors that ask, and what their job may call. */
export interface LaneOptions<Reply> {
  readonly tenants: readonly string[];
  readonly actors: readonly string[];
  readonly host?: Readonly<Record<string, HostFunction>>;
  readonly signal: AbortSignal;
  /** Takes what jobs give back as `planned`; absent where they give back nothing. */
  readonly here?: RunHere<Reply>;
  /** What is planned already. */
  readonly planned?: unknown;
  /** Only queries whose scans read little run on this thread. */
  readonly onlyCheap?: boolean;
}

/** The most bytes that a query may hold on this thread: merging more would delay other requests. */
const maxHeldHere = 512 * 1024;
/** Queries that run on this thread although their scans read much: each has several scans under way. */
const maxWideHere = 16;
/** The request of a longer call is work to read. */
const maxLightBytes = 8 * 1024;

/**
 * Places queries on threads by what they cost. A query is planned on the thread that serves many small ones at a time. If it
 * takes next to nothing besides its scans it runs on this thread, which gives out the scans: where scans read little, or where they
 * find little, as when they look for a rare text. Others run where they were planned.
 * One that turns out to be large goes on, with what was found for it, on a thread of its own, in its tenant's turn.
 */
export class QueryLanes {
  readonly #options: QueryLanesOptions;
  readonly #hostOf: ReturnType<typeof querierHost>;
  readonly #corrupt: CorruptSegments;
  readonly #listSizes = new ListSizes();
  readonly #growths = new KnownGrowths();
  /** Queries that run on this thread. */
  #here = 0;

  constructor(options: QueryLanesOptions) {
    const { services, onCorrupt = () => undefined } = options;
    this.#options = options;
    this.#hostOf = services === undefined ? () => ({}) : querierHost(services);
    this.#corrupt = new CorruptSegments({ clock: steadyClock, onFound: onCorrupt });
  }

  /** Whether queriers of other processes answer, so that this one only plans and encodes. */
  get isElsewhere(): boolean {
    return this.#options.services === undefined;
  }

  /** Runs a job by its name. `payload` and what makes a querier go to the thread together; resolves with its reply. */
  async run<Reply extends { readonly kind: string }>(
    name: string,
    payload: object,
    options: LaneOptions<Reply>,
  ): Promise<Reply> {
    const { tenants, here, planned } = options;
    const { threads, hidesRows, deletesOf = () => "" } = this.#options;
    const deletes = tenants.map((tenant) => [tenant, deletesOf(tenant)] as const);
    const job = {
      ...{ ...payload, threads, hidesRows: tenants.some(hidesRows) },
      deletes: new Map(deletes.filter(([, text]) => text !== "")),
    };
    const small = { ...job, maxCost: urgentBytes };
    const views: string[] = [];
    try {
      let reply: Reply | MovedOn | Planned =
        planned === undefined
          ? await this.#run<Reply | MovedOn | Planned>(name, small, options, views)
          : { kind: "planned", planned };
      if (here !== undefined && isPlanned(reply)) {
        reply = await this.#runHere(reply.planned, here, options, views);
        if (isMovedOn(reply) && reply.found.cost <= urgentBytes) {
          reply = await this.#run(name, { ...small, ...goingOn(reply) }, options, views);
        }
      }
      if (!isMovedOn(reply)) return reply as Reply;
      return await this.#run(name, { ...job, ...goingOn(reply) }, options, views);
    } finally {
      this.#release(views);
    }
  }

  /**
   * Answers a call that was taken from a scheduler, in the trace of its caller. A light one that reads little is answered on
   * this thread: hops to another and back would cost more than the rest. What ingesters hold of a wide one is compared
   * elsewhere.
   */
  answerCall(call: ScheduledCall, { signal }: CallOptions): Promise<Uint8Array> {
    const { tenant, actors } = call;
    const answer = async (): Promise<Uint8Array> => {
      const options = { tenants: tenant.split("|"), actors, signal };
      const asked = call.body.length > maxLightBytes ? undefined : requestOf(call);
      const mayRunHere =
        asked !== undefined && (call.method !== "query" || isLightQuery(asked as QueryRequest));
      const here = async (_: unknown, querier: Querier): Promise<CallReply> => {
        const body = await answerScheduled(querier, call, { signal }, asked);
        return { kind: "answer", body };
      };
      const atOnce = mayRunHere ? { here, planned: call, onlyCheap: true } : {};
      return (await this.run<CallReply>("call", { call }, { ...options, ...atOnce })).body;
    };
    const parent = isTracing() ? parseTraceparent(call.traceparent, call.tracestate) : undefined;
    if (parent === undefined) return answer();
    const span = beginServed(`scheduled ${call.method}`, { attributes: { tenant } }, parent);
    return runSpan(span, answer);
  }

  #runHere<Reply>(
    planned: unknown,
    here: RunHere<Reply>,
    { tenants, onlyCheap = false }: LaneOptions<Reply>,
    views: string[],
  ): Promise<Reply | MovedOn> {
    const { deletesOf, hidesRows, services, threads } = this.#options;
    if (services === undefined) throw new Error("queriers of other processes answer");
    const onView = (view: string) => views.push(view);
    const { deletes, ...others } = services;
    const takesNarrow = this.#here++ < maxWideHere && !onlyCheap;
    return orMovedOn(
      (moveOn) => {
        const querier = new Querier({
          ...{ ...others, threads, corrupt: this.#corrupt },
          ...{ listSizes: this.#listSizes, growths: this.#growths },
          ...(deletesOf === undefined ? {} : { deletesOf }),
          ...(tenants.some(hidesRows) ? { deletes } : {}),
          lookUp: (request, signal) => lookUp(request, services, onView, signal),
          small: { maxCost: urgentBytes, maxHeldBytes: maxHeldHere, takesNarrow, moveOn },
        });
        return here(planned, querier, (cost) => moveOn({ cost, lists: [], missing: [] }));
      },
      () => ({ planned }),
    ).finally(() => {
      this.#here--;
    });
  }

  async #run<Reply>(
    name: string,
    asked: Omit<QuerierJob, "memory">,
    { tenants, actors, host, signal }: Omit<LaneOptions<unknown>, "here">,
    views: string[],
  ): Promise<Reply> {
    const { pool, memory, host: shared } = this.#options;
    const isSmall = asked.maxCost !== undefined;
    const tenant = tenants.join("|");
    const job: QuerierJob = { ...asked, memory: memory.open({ mayWait: !isSmall, tenant }) };
    const share = { tenant, actors, cost: asked.found?.cost ?? 0 };
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
    if (views.length === 0) return;
    const ingester: HeldRows | undefined = this.#options.services?.ingester;
    const { signal } = new AbortController();
    for (const view of views) ingester?.release(view, { signal }).catch(() => undefined);
  }
}

function isLightQuery({ plan }: QueryRequest): boolean {
  return plan.kind === "log" || isLight(plan.root);
}

type AnyReply = { readonly kind: string };

function isPlanned(reply: AnyReply): reply is Planned {
  return reply.kind === "planned";
}

function isMovedOn(reply: AnyReply): reply is MovedOn {
  return reply.kind === "moved_on";
}

/** What the next job of a query knows. */
function goingOn({ found, more }: MovedOn) {
  return { ...more, found };
}
