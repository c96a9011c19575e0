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
import type { HeldRows, Scanner } from "@skald/contracts";
import { type SegmentLocation, type SegmentRef, systemClock } from "@skald/model";
import { type Logger, Service } from "@skald/runtime";
import type { TenantLimits } from "@skald/runtime/config";
import type { Metrics } from "@skald/runtime/metrics";
import type { ObjectStore, SegmentCatalog } from "@skald/storage";
import type { Route, TenantOptions } from "@skald/transport";
import type { Config } from "../config/root.js";

export interface DeletionParts {
  readonly config: Config;
  readonly tenancy: TenantOptions;
  readonly limits: TenantLimits;
  readonly store: ObjectStore;
  /** Where the bytes of a key are. */
  readonly locate: (key: string) => SegmentLocation;
  readonly segments: SegmentCatalog;
  readonly scanner: Scanner<SegmentRef>;
  readonly ingester: HeldRows;
  /** Whether a tenant's requests are this process's to look after. */
  readonly owns: (tenant: string) => boolean;
  readonly log: Logger;
  readonly metrics: Metrics;
}

export interface BuiltDeletion {
  readonly routes: readonly Route[];
  /** All absent unless retention is enabled: nothing is deleted then, and nothing hidden. */
  readonly service?: Service;
  readonly deletes?: DeleteRequests;
  readonly rules?: RemovalRules;
}

/** Builds what says which rows are deleted, by age and by request, and the API of the latter. */
export function buildDeletion(parts: DeletionParts): BuiltDeletion {
  const { config, limits, tenancy } = parts;
  const { compactor } = config;
  const modeOf = (tenant: string) => limits.of(tenant).deletion_mode;
  const maxIntervalMs = compactor.delete_max_interval;
  const options = { ...tenancy, modeOf, maxIntervalMs, clock: systemClock };
  if (!compactor.retention_enabled)
    return { routes: deleteRoutes({ ...options, deletes: undefined }) };
  const deletes = buildRequests(parts);
  const { ingester, locate, log, metrics, scanner, segments } = parts;
  const loop = new DeletionLoop({
    ...{ deletes, log },
    pass: new DeletePass({
      ...{ catalog: segments, deletes, ingester, log, owns: parts.owns, scanner },
      maxRequests: compactor.delete_batch_size,
    }),
    intervalMs: compactor.apply_retention_interval || compactor.compaction_interval,
  });
  const service = new Service({
    name: "deletion",
    start: (signal) => loop.start(signal),
    run: (signal) => loop.run(signal),
  });
  const rules = new RemovalRules({
    ...{ deletes, locate, log, metrics, scanner, clock: systemClock },
    limitsOf: (tenant) => limits.of(tenant),
  });
  return { service, deletes, rules, routes: deleteRoutes({ ...options, deletes }) };
}

/** The delete requests, as the object store has them. */
export function buildRequests({
  config,
  limits,
  log,
  metrics,
  store,
}: Pick<DeletionParts, "config" | "limits" | "log" | "metrics" | "store">): DeleteRequests {
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
    cancelPeriodMs: delete_request_cancel_period,
    copy: new LocalCopy(join(working_directory, "delete-requests.json")),
  });
}
