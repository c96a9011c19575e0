import { join } from "node:path";
import {
  DeletePass,
  DeleteRequests,
  DeletionLoop,
  deleteRoutes,
  LocalCopy,
  RemovalRules,
  RequestStore,
} from "@skald/compactor";
import type { CallOptions, Deletes, DeletesRequest } from "@skald/contracts";
import { systemClock } from "@skald/model";
import { repeat, Service } from "@skald/runtime";
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
  parts.deletes = deletes;
  parts.hidesRows = (tenant) => deletes?.hidesRows(tenant) ?? false;
  parts.deletesOf = (tenant) => deletes?.generation(tenant) ?? "";
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
  const loop = new DeletionLoop({
    ...{ deletes, log },
    pass: new DeletePass({
      ...{ catalog: segments, deletes, ingester, log, owns, scanner },
      maxRequests: compactor.delete_batch_size,
    }),
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
function deleteRequestsOf(
  { limits, store }: Parts,
  { config, log, metrics }: ModuleContext,
): DeleteRequests {
  const { delete_request_cancel_period, delete_request_store_key_prefix, working_directory } =
    config.compactor;
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
    copy: new LocalCopy(join(working_directory, "delete-requests.json")),
  });
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
  parts.deletes = new FreshDeletes(deletes);
  parts.deletesOf = (tenant) => deletes.generation(tenant);
  const service = new Service({
    name: "known-deletes",
    run: (signal) =>
      repeat(() => deletes.refresh({ signal }), {
        ...{ pauseMs, signal },
        onError: (error) => log.warn("the delete requests cannot be read", { error }),
      }),
  });
  return { service };
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
    if (systemClock.nowMs() - this.#readMs > maxAgeMs) await this.#refresh();
    return this.#deletes.active(request);
  }

  /** The requests that were read last stay in use while the store does not answer. */
  async #refresh(): Promise<void> {
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
