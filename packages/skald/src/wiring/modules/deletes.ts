import type { DeleteRequests } from "@skald/compactor";
import type { CallOptions, Deletes, DeletesRequest } from "@skald/contracts";
import { systemClock } from "@skald/model";
import { repeat, Service } from "@skald/runtime";
import { buildDeletion, buildRequests } from "../deletion.js";
import {
  type BuiltModule,
  isCluster,
  type ModuleContext,
  type Parts,
  tenancyOf,
} from "../module.js";

/** What a client deleted elsewhere is hidden here after this time at most. */
const maxAgeMs = 1000;
/** Pause between readings that no query asks for. */
const pauseMs = 30_000;

/** Takes delete requests and carries them out. */
export function buildDeletes(parts: Parts, { config, log, metrics }: ModuleContext): BuiltModule {
  const { deletes, rules, ...built } = buildDeletion({
    ...{ ...parts, config, metrics, tenancy: tenancyOf(config) },
    owns: (tenant) => parts.serviceRings?.["compactor-ring"]?.owns([tenant]) ?? true,
    log: log.child({ component: "compactor" }),
  });
  parts.deletes = deletes;
  parts.hidesRows = (tenant) => deletes?.hidesRows(tenant) ?? false;
  parts.deletesOf = (tenant) => deletes?.generation(tenant) ?? "";
  parts.removalRules = rules;
  return built;
}

/** Knows delete requests that another process takes. */
export function buildKnownDeletes(parts: Parts, context: ModuleContext): BuiltModule {
  // A process that takes the requests knows them best.
  if (Object.hasOwn(parts, "hidesRows")) return {};
  parts.hidesRows = () => parts.deletes !== undefined;
  parts.deletesOf = () => "";
  if (!context.config.compactor.retention_enabled || !isCluster(context.config)) return {};
  const log = context.log.child({ component: "deletes" });
  const deletes = buildRequests({ ...context, ...parts, log });
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

/** Reads the requests again before a query is answered, if the last reading is not of just now. */
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

  /** What was known before serves while the store does not answer. */
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
