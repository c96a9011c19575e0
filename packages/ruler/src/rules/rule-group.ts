/** A group as users write it: rules that are evaluated one after another, again and again. */
export interface RuleGroup {
  readonly name: string;
  /** 0: that of the ruler. */
  readonly intervalMs: number;
  /** Rules ask for the past by so much; undefined: they ask for now. */
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
  /** The expression as it is printed; empty until the rule was checked. */
  readonly query: string;
  readonly forMs: number;
  readonly keepFiringForMs: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** A group, and all that is wrong with its rules. */
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
  /** Why it cannot be evaluated. */
  readonly problem?: string | undefined;
  /** When it is only a part of the group: of each rule its place in the whole. */
  readonly places?: readonly number[];
}

export function nameOfRule({ alert, record }: Pick<Rule, "alert" | "record">): string {
  return alert === "" ? record : alert;
}

/** Names a group among all of a ruler. */
export function keyOfGroup({ tenant, namespace, group }: PlacedGroup): string {
  return [tenant, namespace, group.name].map(encodeURIComponent).join("/");
}

/** Rules with the same name and labels are the same through changes of all else. */
export function identityOf(rule: Rule): string {
  return JSON.stringify([rule.alert, rule.record, Object.entries(rule.labels).sort()]);
}
