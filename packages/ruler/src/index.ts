export { GroupRunner } from "./evaluate/group-runner.js";
export { LocalRuleStore } from "./store/local-rule-store.js";
export { ObjectRuleStore } from "./store/object-rule-store.js";
