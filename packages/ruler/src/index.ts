export { httpQuerier, readInstantAnswer, rulerActor } from "./evaluate/http-querier.js";
export { ruleRoutes } from "./http/rule-routes.js";
export { ruleStatusRoutes } from "./http/status-routes.js";
export { Ruler, type RulerDeps, type RulerTenantLimits } from "./ruler.js";
export { urlProblem } from "./send/alertmanagers.js";
export { LocalRuleStore } from "./store/local-rule-store.js";
export { ObjectRuleStore } from "./store/object-rule-store.js";
export type { RuleStore } from "./store/rule-store.js";
