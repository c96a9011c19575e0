import type { RemovalRules } from "@skald/compactor";
import type {
  Catalog,
  Deletes,
  HeldRows,
  PatternIngester,
  SegmentScanner,
  Tailer,
} from "@skald/contracts";
import type { DistributorMetrics, PushTarget } from "@skald/distributor";
import type { ClientQueries } from "@skald/frontend";
import type { Ingester as OwnIngester } from "@skald/ingester";
import type { SegmentLocation } from "@skald/model";
import type { ErasedRows, LineSampler, PatternThread } from "@skald/patterns";
import type { QueryLanes } from "@skald/querier";
import type { GrpcServer } from "@skald/rpc";
import type { BuildInfo, Ledger, Logger, Service, WorkerPool } from "@skald/runtime";
import type { TenantLimits } from "@skald/runtime/config";
import type { Metrics } from "@skald/runtime/metrics";
import type { ScanPool } from "@skald/scan";
import type { LocalRef, ObjectStore, SegmentCacheCleaner, SegmentCatalog } from "@skald/storage";
import type { Access, RawHandler, Route, SocketRoute, TenantOptions } from "@skald/transport";
import type { Config } from "../config/root.js";
import type { Connections } from "./peers.js";
import type { OwnRing, ServiceRings } from "./rings.js";

/** What every module is built from. */
export interface ModuleContext {
  readonly config: Config;
  readonly log: Logger;
  readonly build: BuildInfo;
  readonly metrics: Metrics;
  /** Who may do what; undefined: everybody may do everything. */
  readonly access?: Access | undefined;
  /** Ends the process in order; absent in tests and tools. */
  readonly endProcess?: ((reason: string) => void) | undefined;
}

/** What a module adds to the process, beside the parts that later modules use. */
export interface BuiltModule {
  /** Starts something that a first request would wait for; false when nothing is left to start. */
  readonly warm?: () => boolean;
  /** Closes ports of its own, and waits for what came in by them; called before any service stops. */
  readonly closeDoors?: () => Promise<void>;
  /** Its life; a module that only answers calls needs none. */
  readonly service?: Service;
  /** Says why it cannot work now although its service runs. */
  readonly unready?: () => string | undefined;
  /** Says what is wrong with it although it works. */
  readonly complaint?: () => string | undefined;
  readonly routes?: readonly Route[];
  readonly socketRoutes?: readonly SocketRoute[];
  readonly rawRoutes?: ReadonlyMap<string, RawHandler>;
}

/** The objects of the process; each is there once its module is built. */
export interface Parts {
  /** Serves the calls of other processes; undefined in a process that is alone. */
  server: GrpcServer | undefined;
  connections: Connections;
  limits: TenantLimits;
  pool: WorkerPool;
  /** The memory of pushes. */
  ledger: Ledger;
  /** Scans the files of this machine. */
  threads: ScanPool;
  /** Keeps parts of the store's segments on this machine; undefined where the store is a directory. */
  cache: SegmentCacheCleaner | undefined;
  /** Scans the segments of the store, too. */
  scanner: SegmentScanner<LocalRef>;
  store: ObjectStore;
  /** Where the bytes of a key are. */
  locate: (key: string) => SegmentLocation;
  /** The segments of the store, as this process lists them. */
  segments: SegmentCatalog;
  /** Finds the segments of a query by `segments`. */
  ownCatalog: Catalog;
  /** Repairs a day whose index is damaged; undefined without a compactor. */
  repairDay: ((indexKey: string) => void) | undefined;
  /** Finds the segments of a query: `ownCatalog`, or an index gateway. */
  catalog: Catalog;
  /** The pattern ingester of this process, and its ring; undefined if it has none. */
  ownPatterns: PatternThread | undefined;
  ownPatternRing: OwnRing | undefined;
  /** All pattern ingesters as one; undefined if patterns are disabled. */
  patterns: Pick<PatternIngester, "patterns"> | undefined;
  /** Takes lines for the pattern ingesters. */
  sampler: LineSampler | undefined;
  /** The ingester of this process, and its ring; undefined if it has none. */
  ownIngester: OwnIngester | undefined;
  ownRing: OwnRing | undefined;
  /** The rings of other services that this process is a member of. */
  serviceRings: ServiceRings | undefined;
  /** All ingesters as one. */
  ingester: HeldRows;
  /** The same, but it answers only if no ingester that may have rows is away. */
  everyIngester: HeldRows;
  /** Time since an ingester left with all its rows stored, ms; undefined in a single process. */
  sinceLeftMs: (() => number) | undefined;
  /** Follows the rows of all ingesters. */
  tailer: Tailer;
  /** Where a distributor sends rows. */
  pushTargetWith: (metrics: DistributorMetrics) => PushTarget;
  /** Hides deleted rows; undefined if nothing is ever deleted by request. */
  deletes: Deletes | undefined;
  hidesRows: (tenant: string) => boolean;
  /** A text that changes with every delete request of a tenant, and with its progress. */
  deletesOf: (tenant: string) => string;
  /** What patterns must tell nothing of; undefined if nothing is ever deleted by request. */
  erasedOf: ((tenant: string) => Promise<readonly ErasedRows[]>) | undefined;
  /** Says what the compactor removes; undefined without retention. */
  removalRules: RemovalRules | undefined;
  /** Where queries run. */
  lanes: QueryLanes;
  frontend: ClientQueries;
}

export type Builder = (parts: Parts, context: ModuleContext) => BuiltModule;

export function tenancyOf(config: Config): TenantOptions {
  return { authEnabled: config.auth_enabled, noAuthTenant: config.no_auth_tenant };
}

/** Whether other processes share the work: then rings are shared, and calls are served. */
export function isCluster({ ingester, target }: Config): boolean {
  return ingester.lifecycler.ring.kvstore.store === "redis" || !target.includes("all");
}
