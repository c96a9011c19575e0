import { join } from "node:path";
import {
  DeletePass,
  DeleteRequests,
  DeletionLoop,
  deleteRoutes,
  isFinished,
  LocalCopy,
  RemovalRules,
  RequestStore,
} from "@skald/compactor";
import type { CallOptions, Deletes, DeletesRequest } from "@skald/contracts";
import { nsPerMs, systemClock, unavailable } from "@skald/model";
import type { ErasedRows } from "@skald/patterns";
import { repeat, Service } from "@skald/runtime";
import { tenantPrefix } from "@skald/storage";
import {
  type BuiltModule,
  isCluster,
  type ModuleContext,
  type Parts,
  tenancyOf,
} from "../module.js";

/** Takes delete requests and carries them out. Without retention nothing is deleted, and nothing is hidden. */
export function buildDeletes(parts: Parts, context: ModuleContext): BuiltModule {
  const { config, metrics } = context;
  const { limits, locate, scanner, segments, everyIngester: ingester } = parts;
  const { compactor } = config;
  const log = context.log.child({ component: "compactor" });
  const deletes = compactor.retention_enabled
    ? deleteRequestsOf(parts, { ...context, log })
    : undefined;
  parts.deletesOf = (tenant) => deletes?.generation(tenant) ?? "";
  if (deletes !== undefined && isCluster(config)) useFresh(parts, deletes);
  else {
    parts.deletes = deletes;
    parts.hidesRows = (tenant) => deletes?.hidesRows(tenant) ?? false;
    parts.erasedOf = deletes && (async (tenant) => erasedBy(deletes, tenant));
  }
  const routes = deleteRoutes({
    ...{ ...tenancyOf(config), deletes, clock: systemClock },
    modeOf: (tenant) => limits.of(tenant).deletion_mode,
    maxIntervalMs: compactor.delete_max_interval,
  });
  if (deletes === undefined) return { routes };
  parts.removalRules = new RemovalRules({
    ...{ deletes, locate, log, metrics, scanner, clock: systemClock },
    limitsOf: (tenant) => limits.of(tenant),
  });
  const owns = (tenant: string) => parts.serviceRings?.["compactor-ring"]?.owns([tenant]) ?? true;
  const copies = new KeptCopies({ deletes, parts });
  const loop = new DeletionLoop({
    ...{ deletes, log },
    pass: new DeletePass({
      ...{ catalog: segments, deletes, ingester, log, owns, scanner },
      dropCopies: ({ request }, options) => copies.drop(request.tenant, options),
      settleMs: isCluster(config) ? settleMs : 0,
      maxRequests: compactor.delete_batch_size,
    }),
    onRefreshed: (options) => copies.sweep(options),
    intervalMs: compactor.apply_retention_interval || compactor.compaction_interval,
  });
  const service = new Service({
    name: "deletion",
    start: (signal) => loop.start(signal),
    run: (signal) => loop.run(signal),
  });
  return { service, routes };
}

/** The delete requests of the object store. */
export function deleteRequestsOf(
  { limits, store }: Parts,
  { config, log, metrics }: ModuleContext,
): DeleteRequests {
  const {
    delete_request_cancel_period,
    delete_request_redact_period,
    delete_request_store_key_prefix,
    working_directory,
  } = config.compactor;
  const requests = new RequestStore({
    store,
    prefix: delete_request_store_key_prefix,
    onDamaged: (key, error) =>
      log.error(
        "a file of a delete request cannot be read: unless a copy is here, it hides nothing",
        { key, error },
      ),
  });
  return new DeleteRequests({
    ...{ requests, clock: systemClock, log, metrics },
    modeOf: (tenant) => limits.of(tenant).deletion_mode,
    pendingLimitOf: (tenant) => limits.of(tenant).max_pending_delete_requests,
    cancelPeriodMs: delete_request_cancel_period,
    redactPeriodMs: delete_request_redact_period,
    copy: new LocalCopy(join(working_directory, "delete-requests.json")),
  });
}

/** Other processes read the requests, and drop what they keep of their rows, three times within this time. */
const settleMs = 90_000;

/** What patterns must tell nothing of. Throws unavailable while nobody could read the requests since the start. */
function erasedBy(deletes: DeleteRequests, tenant: string): readonly ErasedRows[] {
  if (!deletes.isKnown)
    throw unavailable("the delete requests could not be read from the object store yet");
  return deletes.recent(tenant).map(({ request, log }) => ({
    id: request.id,
    matchers: request.redactedMs === undefined ? log.matchers : undefined,
    fromNs: BigInt(request.boundsMs[0] as number) * nsPerMs,
    toNs: BigInt(request.boundsMs.at(-1) as number) * nsPerMs + 1n,
  }));
}

interface KeptCopiesDeps {
  readonly deletes: DeleteRequests;
  readonly parts: Pick<Parts, "cache" | "ownPatterns">;
}

/** What this process keeps of deleted rows beside store and ingesters: segments in the cache, and patterns. */
export class KeptCopies {
  readonly #deps: KeptCopiesDeps;
  /** Whether it has looked at what earlier processes left. */
  #hasLooked = false;

  constructor(deps: KeptCopiesDeps) {
    this.#deps = deps;
  }

  /** Drops cached segments of a tenant that left the store, and patterns of streams that a request touches. */
  async drop(tenant: string, options: CallOptions): Promise<void> {
    const { cache, ownPatterns } = this.#deps.parts;
    await ownPatterns?.erase(tenant, options);
    await cache?.dropGone(tenantPrefix(tenant), options);
  }

  /** Does so for tenants whose rows are being deleted, or were a short time ago; for all that ever asked, the first time. */
  async sweep(options: CallOptions): Promise<void> {
    const { deletes, parts } = this.#deps;
    const due = deletes.due();
    for (const tenant of deletes.tenants()) {
      const recent = deletes.recent(tenant);
      const mayHaveLeft = due.has(tenant) || recent.some(isFinished);
      if (mayHaveLeft || !this.#hasLooked) await this.drop(tenant, options);
      else if (recent.length > 0) await parts.ownPatterns?.erase(tenant, options);
    }
    this.#hasLooked = true;
  }
}

/** A delete request of another process hides rows here after this time at most. */
const maxAgeMs = 1000;
/** Pause between readings that no query asks for. */
const pauseMs = 30_000;

/** Knows the delete requests that another process takes. */
export function buildKnownDeletes(parts: Parts, context: ModuleContext): BuiltModule {
  // A process that takes the requests itself knows them already.
  if (Object.hasOwn(parts, "hidesRows")) return {};
  parts.hidesRows = () => parts.deletes !== undefined;
  parts.deletesOf = () => "";
  if (!context.config.compactor.retention_enabled || !isCluster(context.config)) return {};
  const log = context.log.child({ component: "deletes" });
  const deletes = deleteRequestsOf(parts, { ...context, log });
  useFresh(parts, deletes);
  const copies = new KeptCopies({ deletes, parts });
  parts.deletesOf = (tenant) => deletes.generation(tenant);
  const service = new Service({
    name: "known-deletes",
    run: (signal) =>
      repeat(() => deletes.refresh({ signal }).then(() => copies.sweep({ signal })), {
        ...{ pauseMs, signal },
        onError: (error) => log.warn("the delete requests cannot be read", { error }),
      }),
  });
  return { service };
}

/** Another process may take a request, or open one again: queries and patterns read them first. */
function useFresh(parts: Parts, deletes: DeleteRequests): void {
  const fresh = new FreshDeletes(deletes);
  parts.deletes = fresh;
  parts.hidesRows = () => true;
  parts.erasedOf = async (tenant) => {
    await fresh.refresh();
    return erasedBy(deletes, tenant);
  };
}

/** Reads the requests again before a query is answered, unless they were read just now. */
class FreshDeletes implements Deletes {
  readonly #deletes: DeleteRequests;
  #readMs = 0;
  #reading: Promise<void> | undefined;

  constructor(deletes: DeleteRequests) {
    this.#deletes = deletes;
  }

  async active(request: DeletesRequest, { signal }: CallOptions) {
    signal.throwIfAborted();
    await this.refresh();
    return this.#deletes.active(request);
  }

  /** The requests that were read last stay in use while the store does not answer. */
  async refresh(): Promise<void> {
    if (systemClock.nowMs() - this.#readMs <= maxAgeMs) return;
    const startMs = systemClock.nowMs();
    this.#reading ??= this.#deletes
      .refresh({ signal: AbortSignal.timeout(pauseMs) })
      .catch(() => undefined)
      .finally(() => {
        this.#readMs = startMs;
        this.#reading = undefined;
      });
    await this.#reading;
  }
}
