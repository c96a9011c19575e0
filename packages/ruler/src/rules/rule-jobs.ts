import { parseQuery, printQuery } from "@skald/logql";
import { invalidArgument } from "@skald/model";
import type { JobHandler } from "@skald/runtime";
import { checkGroups } from "./check-group.js";
import { readGroup, readGroups, writeYaml } from "./group-yaml.js";
import type { RuleGroup } from "./rule-group.js";

/** What `RuleTexts` has done on a thread. */
export const ruleJobs = {
  read_rule_group: (text: Uint8Array) => {
    const group = readGroup(textOf(text));
    const problems = checkGroups([group]);
    return { value: { group: problems.length === 0 ? withQueries(group) : group, problems } };
  },
  read_rule_groups: (text: Uint8Array) => {
    const groups = readGroups(textOf(text));
    const [problem] = checkGroups(groups);
    if (problem !== undefined) throw invalidArgument(problem);
    return { value: groups.map(withQueries) };
  },
  write_rules: (plain: unknown) => ({ value: writeYaml(plain) }),
} as const satisfies Record<string, JobHandler>;

export type RuleJobName = keyof typeof ruleJobs;

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("utf8");
}

function withQueries(group: RuleGroup): RuleGroup {
  const rules = group.rules.map((rule) => ({ ...rule, query: printQuery(parseQuery(rule.expr)) }));
  return { ...group, rules };
}
