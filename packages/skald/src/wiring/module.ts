import type { DeleteRequests, RemovalRules } from "@skald/compactor";
import type {
  Catalog,
  Deletes,
  Distributor,
  HeldRows,
  PatternIngester,
  SegmentScanner,
  Tailer,
} from "@skald/contracts";
import type { DistributorMetrics, PushTarget } from "@skald/distributor";
import type { Ingester as OwnIngester } from "@skald/ingester";
import type { SegmentLocation } from "@skald/model";
import type { LineSampler, PatternThread } from "@skald/patterns";
import type { GrpcServer } from "@skald/rpc";
import type { BuildInfo, Logger, Service, WorkerPool } from "@skald/runtime";
import type { TenantLimits } from "@skald/runtime/config";
import type { Metrics } from "@skald/runtime/metrics";
import type { ScanPool } from "@skald/scan";
import type { LocalRef, ObjectStore, SegmentCatalog } from "@skald/storage";
import type { RawHandler, Route, SocketRoute, TenantOptions } from "@skald/transport";
import type { Config } from "../config/root.js";
import type { QueryThreads, QueryThreadsOptions } from "../query/query-threads.js";
import type { Connections } from "./connections.js";
import type { OwnRing, ServiceRings } from "./rings.js";

/** What every module of the process is built from. */
export interface ModuleContext {
  readonly config: Config;
  readonly log: Logger;
  readonly build: BuildInfo;
  readonly metrics: Metrics;
  /** Ends the process in order; absent where it ends with whoever runs it. */
  readonly endProcess?: ((reason: string) => void) | undefined;
}

/** What a module adds to the process beside the objects that later ones take. */
export interface BuiltModule {
  /** Its life; one that only lives from call to call needs none. */
  readonly service?: Service;
  /** Why it can do no work now although its service runs. */
  readonly unready?: () => string | undefined;
  readonly routes?: readonly Route[];
  readonly socketRoutes?: readonly SocketRoute[];
  readonly rawRoutes?: ReadonlyMap<string, RawHandler>;
}

/** The objects of the process by module; each is there once its module was built. */
export interface Parts {
  /** Serves calls of other processes; absent in a process that is alone. */
  server: GrpcServer | undefined;
  connections: Connections;
  limits: TenantLimits;
  pool: WorkerPool;
  /** Scans what is on this machine. */
  threads: ScanPool;
  /** Scans the store's segments too. */
  scanner: SegmentScanner<LocalRef>;
  store: ObjectStore;
  /** Where the bytes of a key are. */
  locate: (key: string) => SegmentLocation;
  /** What is in the store, as this process sees it; `ownCatalog` counts too. */
  segments: SegmentCatalog;
  /** Of the store, as this process sees it. */
  ownCatalog: Catalog;
  /** Has a day looked at whose index is damaged; absent where this process has no compactor. */
  repairDay: ((indexKey: string) => void) | undefined;
  /** What queries find segments by: its own, or that of an index gateway. */
  catalog: Catalog;
  /** That of this process, and its ring; absent where others find patterns, or nobody does. */
  ownPatterns: PatternThread | undefined;
  ownPatternRing: OwnRing | undefined;
  /** All who find patterns, as one; absent where nobody does. */
  patterns: Pick<PatternIngester, "patterns"> | undefined;
  /** Takes lines to find patterns in. */
  sampler: LineSampler | undefined;
  /** That of this process, and its ring; absent where others hold the data. */
  ownIngester: OwnIngester | undefined;
  ownRing: OwnRing | undefined;
  /** The rings of other services that this process is a member of. */
  serviceRings: ServiceRings | undefined;
  /** All ingesters, as one. */
  ingester: HeldRows;
  /** Time since one of them left with all its rows stored, ms; absent where there is one only. */
  sinceLeftMs: (() => number) | undefined;
  /** Follows what all ingesters get. */
  tailer: Tailer;
  /** Where a distributor hands rows to. */
  pushTargetWith: (metrics: DistributorMetrics) => PushTarget;
  distributor: Distributor;
  /** Hides what was deleted; absent where nothing is ever deleted by request. */
  deletes: Deletes | undefined;
  hidesRows: (tenant: string) => boolean;
  /** Changes with every delete request of a tenant, and with what becomes of it. */
  deletesOf: (tenant: string) => string;
  /** Those of this process, to be changed; absent where another one has them. */
  deleteRequests: DeleteRequests | undefined;
  /** What is to leave the store; absent where nothing is. */
  removalRules: RemovalRules | undefined;
  queries: Pick<
    QueryThreadsOptions,
    "pool" | "querier" | "host" | "hidesRows" | "deletesOf" | "memory" | "threads"
  >;
  frontend: QueryThreads;
}

export type Builder = (parts: Parts, context: ModuleContext) => BuiltModule;

export function tenancyOf(config: Config): TenantOptions {
  return { authEnabled: config.auth_enabled, noAuthTenant: config.no_auth_tenant };
}

/** Whether other processes have parts of the work: rings are shared then, and calls are served. */
export function isCluster({ ingester, target }: Config): boolean {
  return ingester.lifecycler.ring.kvstore.store === "redis" || !target.includes("all");
}
