import { Service } from "@skald/runtime";
import type { Config } from "../../config/root.js";
import type { ModuleName } from "../../config/targets.js";
import { ringRoutes } from "../../http/ring-routes.js";
import type { Builder, BuiltModule } from "../module.js";
import { countMembers } from "../ring-metrics.js";
import { buildServiceRing, type OwnRing, type RingBlock } from "../rings.js";

interface ServiceRing {
  /** In the store. */
  readonly name: string;
  readonly title: string;
  readonly path: string;
  readonly blockOf: (config: Config) => RingBlock;
}

export const compactorRing: ServiceRing = {
  ...{ name: "compactor", title: "Compactor ring", path: "/compactor/ring" },
  blockOf: ({ compactor }) => compactor.compactor_ring,
};
export const rulerRing: ServiceRing = {
  ...{ name: "ruler", title: "Ruler ring", path: "/ruler/ring" },
  blockOf: ({ ruler }) => ruler.ring,
};
export const schedulerRing: ServiceRing = {
  ...{ name: "scheduler", title: "Scheduler ring", path: "/scheduler/ring" },
  blockOf: ({ query_scheduler }) => query_scheduler.scheduler_ring,
};
export const indexGatewayRing: ServiceRing = {
  ...{ name: "index-gateway", title: "Index gateway ring", path: "/indexgateway/ring" },
  blockOf: ({ index_gateway }) => index_gateway.ring,
};

/** The ring by which the instances of a service know each other, and its page. */
export function serviceRing(module: ModuleName, ring: ServiceRing): Builder {
  return (parts, { config, log, metrics }) => {
    const own = buildServiceRing(ring.name, ring.blockOf(config), { config, log });
    countMembers(metrics, own.ring);
    parts.serviceRings = { ...parts.serviceRings, [module]: own };
    return moduleOf(module, own, ring);
  };
}

function moduleOf(
  name: string,
  own: OwnRing,
  { title, path }: Pick<ServiceRing, "title" | "path">,
): BuiltModule {
  const service = new Service({
    name,
    start: async (signal) => {
      await own.start();
      await own.join(signal);
    },
    stop: () => own.stop(),
  });
  return {
    service,
    unready: () => own.ring.unready,
    routes: ringRoutes({ paths: [path], title, ring: own.ring }),
  };
}
