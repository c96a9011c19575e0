import { parseQuery } from "@skald/logql";
import { TemplateSyntaxError } from "@skald/logql/template";
import { SkaldError } from "@skald/model";
import { parseAlertTemplate } from "./alert-template.js";

/** A group as users write it: rules that are evaluated one after another at an interval. */
export interface RuleGroup {
  readonly name: string;
  /** 0: the interval of the ruler. */
  readonly intervalMs: number;
  /** How far in the past rules query; undefined: now. */
  readonly queryOffsetMs: number | undefined;
  /** Alerts or samples that one rule may make; 0: no limit. */
  readonly limit: number;
  /** Added to what every rule makes, below the rule's own. */
  readonly labels: Readonly<Record<string, string>>;
  readonly rules: readonly Rule[];
}

/** One rule: `alert` or `record` is its name, the other is empty. */
export interface Rule {
  readonly record: string;
  readonly alert: string;
  readonly expr: string;
  /** The printed form of the expression; empty until the rule is checked. */
  readonly query: string;
  readonly forMs: number;
  readonly keepFiringForMs: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** A group, and the problems of its rules. */
export interface CheckedGroup {
  readonly group: RuleGroup;
  readonly problems: readonly string[];
}

/** A group and where it is. */
export interface PlacedGroup {
  readonly tenant: string;
  /** Stands for a file of rules. */
  readonly namespace: string;
  readonly group: RuleGroup;
  /** The reason why it cannot be evaluated. */
  readonly problem?: string | undefined;
  /** The places of the rules in the whole group, when this is only a part. */
  readonly places?: readonly number[];
}

export function nameOfRule({ alert, record }: Pick<Rule, "alert" | "record">): string {
  return alert === "" ? record : alert;
}

/** The unique key of a group. */
export function keyOfGroup({ tenant, namespace, group }: PlacedGroup): string {
  return [tenant, namespace, group.name].map(encodeURIComponent).join("/");
}

/** A rule keeps its identity through all changes except to its name and labels. */
export function identityOf(rule: Rule): string {
  return JSON.stringify([rule.alert, rule.record, Object.entries(rule.labels).sort()]);
}

const metricName = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const labelName = /^[a-zA-Z_][a-zA-Z0-9_]*$/;
/** Most bytes of a group. No person writes more. */
export const maxGroupBytes = 1024 * 1024;

/** The problems of the groups in one file, in their order. */
export function checkGroups(groups: readonly RuleGroup[]): string[] {
  const problems: string[] = [];
  const seen = new Set<string>();
  for (const [i, group] of groups.entries()) {
    if (group.name === "") problems.push(`group ${i}: Groupname must not be empty`);
    else if (seen.has(group.name))
      problems.push(`groupname: "${group.name}" is repeated in the same file`);
    seen.add(group.name);
    problems.push(...checkLabels(group.labels));
    if (group.limit < 0) problems.push(`invalid limit: ${group.limit}`);
    for (const rule of group.rules) problems.push(...checkRule(rule, group.name));
  }
  return problems;
}

function checkRule(rule: Rule, group: string): string[] {
  const { alert, record, expr } = rule;
  if (alert !== "" && record !== "") return ["only one of 'record' and 'alert' must be set"];
  if (alert === "" && record === "") return ["one of 'record' or 'alert' must be set"];
  const kind = alert === "" ? "record" : "alert";
  const problems: string[] = [];
  if (expr === "") problems.push("field 'expr' must be set in rule");
  else {
    const problem = checkExpr(expr);
    if (problem !== undefined) {
      const which = `${kind} '${nameOfRule(rule)}' in group '${group}'`;
      problems.push(`could not parse expression for ${which}: ${problem}`);
    }
  }
  if (kind === "record") problems.push(...checkRecord(rule));
  return [
    ...problems,
    ...checkLabels(rule.labels),
    ...checkAnnotations(rule),
    ...checkTemplates(rule),
  ];
}

function checkExpr(expr: string): string | undefined {
  try {
    if (parseQuery(expr).kind !== "log") return undefined;
    return "it finds log lines; a rule needs a metric query, such as count_over_time";
  } catch (error) {
    if (error instanceof SkaldError) return error.message;
    throw error;
  }
}

function checkRecord({ record, forMs, keepFiringForMs, annotations }: Rule): string[] {
  const problems: string[] = [];
  if (Object.keys(annotations).length > 0)
    problems.push("invalid field 'annotations' in recording rule");
  if (forMs > 0) problems.push("invalid field 'for' in recording rule");
  if (keepFiringForMs > 0) problems.push("invalid field 'keep_firing_for' in recording rule");
  if (!metricName.test(record)) problems.push(`invalid recording rule name: ${record}`);
  return problems;
}

function checkLabels(labels: Readonly<Record<string, string>>): string[] {
  const isBad = (name: string) => !labelName.test(name) || name === "__name__";
  return Object.keys(labels)
    .filter(isBad)
    .map((name) => `invalid label name: ${name}`);
}

function checkAnnotations({ annotations }: Rule): string[] {
  return Object.keys(annotations)
    .filter((name) => !labelName.test(name))
    .map((name) => `invalid annotation name: ${name}`);
}

function checkTemplates({ alert, labels, annotations }: Rule): string[] {
  if (alert === "") return [];
  const problems: string[] = [];
  for (const [kind, texts] of [
    ["label", labels],
    ["annotation", annotations],
  ] as const) {
    for (const [name, text] of Object.entries(texts)) {
      try {
        parseAlertTemplate(text, alert);
      } catch (error) {
        if (!(error instanceof TemplateSyntaxError)) throw error;
        problems.push(`${kind} "${name}": ${error.message}`);
      }
    }
  }
  return problems;
}
