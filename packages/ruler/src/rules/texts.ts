// Files of rules without a ruler: for tools that check and compare them.
export { plainGroup, readGroups } from "./group-yaml.js";
export { checkGroups, type RuleGroup } from "./rule-group.js";
