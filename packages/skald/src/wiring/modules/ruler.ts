import { systemClock } from "@skald/model";
import type { RingView } from "@skald/ring";
import { connectionOptionsOf, remoteRules, serveRules } from "@skald/rpc";
import {
  AllRulers,
  type OtherRuler,
  Ruler,
  RuleTexts,
  ruleRoutes,
  ruleStatusRoutes,
  SharedAlerts,
} from "@skald/ruler";
import { Service } from "@skald/runtime";
import { type BuiltModule, type ModuleContext, type Parts, tenancyOf } from "../module.js";
import { buildRuleStore, ruleQuerier } from "../rules.js";

/** How long another ruler may take to say what it evaluates. */
const answerMs = 5000;

/** Evaluates rules with the querier of this process; of several rulers each evaluates its own. */
export function buildRuler(parts: Parts, context: ModuleContext): BuiltModule {
  const { config, log: root, metrics } = context;
  const { frontend, limits } = parts;
  const log = root.child({ component: "ruler" });
  const limitsOf = (tenant: string) => limits.of(tenant);
  const texts = new RuleTexts(parts.pool);
  const { store, files } = buildRuleStore(config, { store: parts.store, texts }, log);
  const owns = ownsOf(parts, context);
  const sharing = {
    sharedAlerts: new SharedAlerts({ store: parts.store, clock: systemClock }),
    onChanged: () => rulers.tellChanged(),
  };
  const ruler = new Ruler({
    ...{ config: config.ruler, store, limitsOf, clock: systemClock, log, metrics },
    ...(owns === undefined ? {} : { owns, ...sharing }),
    querier: ruleQuerier(config, limitsOf, frontend),
  });
  const rulers = new AllRulers({
    ...{ own: ruler.rules, timeoutMs: answerMs, log },
    others: othersOf(parts, context, owns !== undefined),
  });
  if (parts.server !== undefined) serveRules(parts.server, ruler.rules);
  let unwatch = () => {};
  const service = new Service({
    name: "ruler",
    start: async () => {
      await files?.open();
      await ruler.start();
      if (owns !== undefined) unwatch = syncWithRing(parts, ruler);
    },
    run: (signal) => ruler.run(signal),
    stop: async () => {
      unwatch();
      await ruler.stop();
      await files?.close();
    },
  });
  const tenancy = tenancyOf(config);
  const rules = config.ruler.enable_api ? ruleRoutes(ruler, texts, tenancy) : [];
  return { service, routes: [...rules, ...ruleStatusRoutes(rulers, tenancy)] };
}

/** Whether a group, or a rule, is this process's to evaluate; undefined where all are. */
function ownsOf({ limits, serviceRings }: Parts, { config }: ModuleContext) {
  const { enable_sharding, sharding_strategy } = config.ruler;
  const isShuffled = sharding_strategy === "shuffle-sharding";
  const own = serviceRings?.["ruler-ring"];
  if (!enable_sharding || own === undefined) return undefined;
  return (tenant: string, names: readonly string[]) => {
    const size = isShuffled ? limits.of(tenant).ruler_tenant_shard_size : 0;
    return own.owns(names, { tenant, size });
  };
}

/** The other rulers that are well; none where each evaluates all. */
function othersOf(
  { connections, serviceRings }: Parts,
  { config }: ModuleContext,
  isSharing: boolean,
): () => OtherRuler[] {
  const options = connectionOptionsOf("", config.ruler.ruler_client);
  const own = serviceRings?.["ruler-ring"];
  if (!isSharing || own === undefined) return () => [];
  return () =>
    own.ring.view.instances
      .filter(({ id, isHealthy }) => isHealthy && id !== own.id)
      .map(({ id, address }) => ({ id, rules: remoteRules(connections.to(address, options)) }));
}

/** What a ruler evaluates is another as soon as its ring is. */
function syncWithRing({ serviceRings }: Parts, ruler: Pick<Ruler, "sync">): () => void {
  const ring = serviceRings?.["ruler-ring"]?.ring;
  let seen: RingView | undefined;
  const end = ring?.onRead(() => {
    if (ring.view === seen) return;
    seen = ring.view;
    void ruler.sync();
  });
  return () => end?.();
}
