import { systemClock } from "@skald/model";
import { Ruler, ruleRoutes, ruleStatusRoutes } from "@skald/ruler";
import { Service } from "@skald/runtime";
import { buildRuleStore, ruleQuerier } from "../rules.js";
import { type BuiltModule, type ModuleContext, type Parts, tenancyOf } from "./module.js";

/** Evaluates rules with the querier of this process. */
export function buildRuler(
  parts: Parts,
  { config, log: root, metrics }: ModuleContext,
): BuiltModule {
  const { frontend, limits } = parts;
  const log = root.child({ component: "ruler" });
  const limitsOf = (tenant: string) => limits.of(tenant);
  const { store, files } = buildRuleStore(config, parts.store, log);
  const ruler = new Ruler({
    ...{ config: config.ruler, store, limitsOf, clock: systemClock, log, metrics },
    querier: ruleQuerier(config, limitsOf, (request) => frontend.serve("query", request)),
  });
  const service = new Service({
    name: "ruler",
    start: async () => {
      await files?.open();
      await ruler.start();
    },
    run: (signal) => ruler.run(signal),
    stop: async () => {
      await ruler.stop();
      await files?.close();
    },
  });
  const tenancy = tenancyOf(config);
  const rules = config.ruler.enable_api ? ruleRoutes(ruler, tenancy) : [];
  return { service, routes: [...rules, ...ruleStatusRoutes(ruler, tenancy)] };
}
