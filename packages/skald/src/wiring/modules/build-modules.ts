import type { ModuleName } from "../../config/targets.js";
import type { Builder, BuiltModule, ModuleContext, Parts } from "../module.js";
import { buildLimits, buildPool } from "./base.js";
import { buildCompactor } from "./compactor.js";
import { buildDeletes, buildKnownDeletes } from "./deletes.js";
import { buildDistributor } from "./distributor.js";
import { buildIngester } from "./ingester.js";
import { buildPatternIngester } from "./pattern-ingester.js";
import { buildQuerier } from "./querier.js";
import { buildFrontend } from "./query-frontend.js";
import { buildCatalogClient, buildIndexGateway } from "./remote/catalogs.js";
import { buildIngesters } from "./remote/ingesters.js";
import { buildPatternIngesters } from "./remote/pattern-ingesters.js";
import { buildPeers } from "./remote/peers.js";
import { buildRuler } from "./ruler.js";
import { buildCallTaker, buildScheduler } from "./scheduler.js";
import {
  compactorRing,
  indexGatewayRing,
  rulerRing,
  schedulerRing,
  serviceRing,
} from "./service-ring.js";
import { buildStore } from "./store.js";

/** Builds modules in the order given: the only place that knows whether a contract is a method call here. */
export function buildModules(
  names: readonly ModuleName[],
  context: ModuleContext,
): readonly BuiltModule[] {
  // Filled by the builders; the table of targets.ts has each after those that it needs.
  const parts = {} as Parts;
  return names.map((name) => builders[name](parts, context));
}

const builders: Readonly<Record<ModuleName, Builder>> = {
  peers: buildPeers,
  "runtime-config": buildLimits,
  "worker-pool": buildPool,
  store: buildStore,
  "pattern-ingester": buildPatternIngester,
  "pattern-ingesters": buildPatternIngesters,
  ingester: buildIngester,
  ingesters: buildIngesters,
  "known-deletes": buildKnownDeletes,
  deletion: buildDeletes,
  distributor: buildDistributor,
  "catalog-client": buildCatalogClient,
  querier: buildQuerier,
  "query-frontend": buildFrontend,
  compactor: buildCompactor,
  ruler: buildRuler,
  "index-gateway": buildIndexGateway,
  "query-scheduler": buildScheduler,
  "call-taker": buildCallTaker,
  "compactor-ring": serviceRing("compactor-ring", compactorRing),
  "ruler-ring": serviceRing("ruler-ring", rulerRing),
  "scheduler-ring": serviceRing("scheduler-ring", schedulerRing),
  "index-gateway-ring": serviceRing("index-gateway-ring", indexGatewayRing),
};
