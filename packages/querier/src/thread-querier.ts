import {
  answerScheduled,
  type CallOptions,
  type Catalog,
  type Deletes,
  type HeldRows,
  type ScheduledCall,
  type SegmentScanner,
} from "@skald/contracts";
import { takesMemory } from "@skald/model";
import {
  type HostFunction,
  type JobContext,
  type JobResult,
  MemoryShare,
  type MemoryShareRef,
} from "@skald/runtime";
import type { CorruptSegments } from "./find/corrupt-segments.js";
import { type Found, type LookedUp, type LookUpRequest, lookUp } from "./find/source-finder.js";
import { Querier, type SmallQueries } from "./querier.js";
import { KnownGrowths } from "./run/cut-tasks.js";
import { ListSizes } from "./run/stream-lists.js";

/** The part of a job that a querier on a query thread is made from: plain data. */
export interface QuerierJob {
  /** What the query takes of the memory of all queries. */
  readonly memory: MemoryShareRef;
  /** Scans that run at the same time. */
  readonly threads: number;
  /** Rows of the tenants were deleted that may still be stored. */
  readonly hidesRows: boolean;
  /** By tenant, what changes with its delete requests. */
  readonly deletes: ReadonlyMap<string, string>;
  /** Bytes that a query may cost, by estimate, and hold; absent where queries of any size run. */
  readonly maxCost?: number;
  /** What was found before the query was placed here. */
  readonly found?: Found;
}

/** A call that was taken from a scheduler. */
export interface CallJob extends QuerierJob {
  readonly call: ScheduledCall;
}

/** How such a job ends. */
export interface CallReply {
  readonly kind: "answer";
  readonly body: Uint8Array;
}

/** The services that queriers ask, where they are. */
export interface QuerierServices {
  readonly ingester: HeldRows;
  readonly catalog: Catalog;
  /** Scans segments of the store. */
  readonly scanner: SegmentScanner;
  /** Absent where nothing is ever deleted by request. */
  readonly deletes?: Deletes | undefined;
}

const listSizes = new ListSizes();
const growths = new KnownGrowths();

/** What a job of the small lane answers where its query is not small: the job goes on elsewhere with it. Plain data. */
export interface MovedOn {
  readonly kind: "moved_on";
  readonly found: Found;
  /** What else the job knows by then. */
  readonly more?: object | undefined;
}

/**
 * Runs a job of a query thread. `work` makes its querier, which asks the services of the thread that gave the job, and says
 * with what else the job can go on elsewhere, if the query turns out to be too large for this thread.
 */
export async function onQueryThread(
  job: QuerierJob,
  context: JobContext,
  corrupt: CorruptSegments,
  work: (querierOf: (more?: object) => Querier) => Promise<JobResult>,
): Promise<JobResult> {
  let more: object | undefined;
  const reply = await orMovedOn(
    (moveOn) =>
      work((known) => {
        more = known;
        return threadQuerier(job, context, corrupt, moveOn);
      }),
    () => more,
  );
  return "kind" in reply ? { value: reply } : reply;
}

/** Answers a call on a query thread. */
export function answerCallJob(
  job: CallJob,
  context: JobContext,
  corrupt: CorruptSegments,
): Promise<JobResult> {
  return onQueryThread(job, context, corrupt, async (querierOf) => {
    const body = await answerScheduled(querierOf(), job.call, { signal: context.signal });
    const value: CallReply = { kind: "answer", body };
    return { value, transfer: takesMemory(body) ? [body.buffer as ArrayBuffer] : [] };
  });
}

/** Runs a query; one that moved on ends as such, with what `more` gives by then, and not with the error that ended it here. */
export async function orMovedOn<Reply>(
  query: (moveOn: SmallQueries["moveOn"]) => Promise<Reply>,
  more: () => object | undefined,
): Promise<Reply | MovedOn> {
  let movedOn: MovedOn | undefined;
  try {
    return await query((found) => {
      movedOn ??= { kind: "moved_on", found, more: more() };
      return new Error("the query goes on elsewhere");
    });
  } catch (error) {
    if (movedOn !== undefined) return movedOn;
    throw error;
  }
}

function threadQuerier(
  { deletes, found, hidesRows, maxCost, memory, threads }: QuerierJob,
  context: JobContext,
  corrupt: CorruptSegments,
  moveOn: SmallQueries["moveOn"],
): Querier {
  const remote = remoteMethods(context);
  return new Querier({
    ingester: remote("ingester") as HeldRows,
    catalog: remote("catalog") as Catalog,
    scanner: remote("scanner") as SegmentScanner,
    ...(hidesRows ? { deletes: remote("deletes") as Deletes } : {}),
    lookUp: (request, signal) => context.call<LookedUp>("find", request, { signal }),
    deletesOf: (tenant) => deletes.get(tenant) ?? "",
    memory: new MemoryShare(memory, context.isCancelled),
    shouldStop: context.isCancelled,
    ...(maxCost === undefined ? {} : { small: { maxCost, maxHeldBytes: maxCost, moveOn } }),
    ...{ corrupt, found, listSizes, growths, threads },
  });
}

/** Methods of services that jobs call. `find` stands for `select` of the ingester and the listing that follows. */
const methods = {
  ingester: ["changes", "run"],
  catalog: ["list", "count"],
  scanner: ["run"],
  deletes: ["active"],
} as const;

interface Called {
  /** The arguments of the method but its options. */
  readonly given: readonly unknown[];
  /** The options of the call but its signal. */
  readonly options: object;
}

type Method = (...given: unknown[]) => Promise<unknown>;

/** Makes services whose methods are calls of a job. */
function remoteMethods({ call }: JobContext) {
  return (service: keyof typeof methods): unknown => {
    const made: Record<string, Method> = {};
    for (const method of methods[service]) {
      made[method] = (...all) => {
        const { signal, ...options } = all.pop() as CallOptions;
        return call(`${service}.${method}`, { given: all, options } satisfies Called, { signal });
      };
    }
    return made;
  };
}

/** The functions that such a job calls. Its views stay open until somebody releases what `onView` takes. */
export function querierHost(
  services: QuerierServices,
): (onView: (view: string) => void) => Record<string, HostFunction> {
  const host: Record<string, HostFunction> = {};
  for (const [service, names] of Object.entries(methods)) {
    const target = services[service as keyof QuerierServices] as Record<string, Method> | undefined;
    if (target === undefined) continue;
    for (const name of names) {
      host[`${service}.${name}`] = async ({ given, options }: Called, { signal }) => {
        const value = await (target[name] as Method).call(target, ...given, { ...options, signal });
        return value instanceof Uint8Array ? moved(value) : { value };
      };
    }
  }
  return (onView) => ({
    ...host,
    find: async (request: LookUpRequest, { signal }) => ({
      value: await lookUp(request, services, onView, signal),
    }),
  });
}

/** Bytes that move to the thread. Those that came over a connection may share their memory with others. */
function moved(value: Uint8Array) {
  const own = takesMemory(value) ? value : new Uint8Array(value);
  return { value: own, transfer: [own.buffer as ArrayBuffer] };
}
