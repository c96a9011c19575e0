import { Service } from "@skald/runtime";
import { ringRoutes } from "../../http/ring-routes.js";
import { buildServiceRing } from "../rings.js";
import type { Builder } from "./module.js";

/** The ring by which the instances of a service know each other, and its page. */
export function serviceRing(name: string, title: string, path: string): Builder {
  return (_parts, { config, log }) => {
    const { compactor, distributor } = config;
    // The others are kept as the ring of distributors is.
    const block = name === "compactor" ? compactor.compactor_ring : distributor.ring;
    const own = buildServiceRing(name, block, { config, log });
    const service = new Service({
      name: `${name}-ring`,
      start: async (signal) => {
        await own.start();
        await own.join(signal);
      },
      stop: () => own.stop(),
    });
    return {
      service,
      unready: () => own.ring.unready,
      routes: ringRoutes({ paths: [path], title: `${title} ring`, ring: own.ring }),
    };
  };
}
