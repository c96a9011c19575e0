import type { AlertState, CallOptions, RuleGroupStatus, RuleState, Rules } from "@skald/contracts";
import type { Labels } from "@skald/model";
import { type Logger, withDeadline } from "@skald/runtime";
import { type Alert, AlertingRule } from "./evaluate/alerting-rule.js";
import type { GroupRunner, RuleStatus } from "./evaluate/group-runner.js";

/** Another ruler. */
export interface OtherRuler {
  readonly id: string;
  readonly rules: Rules;
}

interface AllRulersOptions {
  readonly own: Rules;
  /** The healthy rulers, without this one. */
  readonly others: () => readonly OtherRuler[];
  /** How long a ruler may take to answer, ms. */
  readonly timeoutMs: number;
  readonly log: Logger;
}

/** Groups of all rulers, and warnings about missing ones. */
interface AllGroups {
  /** By namespace and name. */
  readonly groups: readonly RuleGroupStatus[];
  readonly warnings: readonly string[];
}

/** All rulers that share the rules, as one. */
export class AllRulers {
  readonly #options: AllRulersOptions;

  constructor(options: AllRulersOptions) {
    this.#options = options;
  }

  /** Lists the groups of a tenant. The groups of a ruler that does not answer are missing, and a warning says so. */
  async groups(tenant: string, { signal }: CallOptions): Promise<AllGroups> {
    const { own, others, timeoutMs, log } = this.#options;
    const warnings: string[] = [];
    const asked = others().map(async ({ id, rules }) => {
      const message = `no answer in ${timeoutMs} ms`;
      try {
        return await withDeadline({ timeoutMs, message, signal }, (both) =>
          rules.groups({ tenant }, { signal: both }),
        );
      } catch (error) {
        signal.throwIfAborted();
        log.warn("a ruler does not say what it evaluates", { ruler: id, error });
        warnings.push(`the rules of ruler ${id} are missing: it does not answer`);
        return [];
      }
    });
    const parts = await Promise.all([own.groups({ tenant }, { signal }), ...asked]);
    return { groups: mergeGroups(parts.flat()), warnings: warnings.sort() };
  }

  /** Asks the other rulers to read changed rules. Rulers that do not answer read them a little later by themselves. */
  tellChanged(): void {
    const { others, timeoutMs } = this.#options;
    for (const { rules } of others())
      rules.changed({ signal: AbortSignal.timeout(timeoutMs) }).catch(() => undefined);
  }
}

/** Merges the parts of each group. If two rulers briefly own the same rule, the newer state counts. */
export function mergeGroups(parts: readonly RuleGroupStatus[]): RuleGroupStatus[] {
  const merged = new Map<string, RuleGroupStatus>();
  for (const part of parts) {
    const key = keyOf(part);
    const known = merged.get(key);
    merged.set(key, known === undefined ? part : mergeTwo(known, part));
  }
  return [...merged].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, group]) => group);
}

/** A key that sorts groups as one ruler sorts them. */
export function keyOf({ namespace, name }: Pick<RuleGroupStatus, "namespace" | "name">): string {
  return [namespace, name].map(encodeURIComponent).join("/");
}

function mergeTwo(a: RuleGroupStatus, b: RuleGroupStatus): RuleGroupStatus {
  const rules = new Map<number, RuleState>();
  for (const rule of [...a.rules, ...b.rules]) {
    const known = rules.get(rule.place);
    if (known === undefined || (rule.lastEvaluationMs ?? 0) > (known.lastEvaluationMs ?? 0))
      rules.set(rule.place, rule);
  }
  const last = Math.max(a.lastEvaluationMs ?? 0, b.lastEvaluationMs ?? 0);
  return {
    ...a,
    ...(last === 0 ? {} : { lastEvaluationMs: last }),
    evaluationSeconds: Math.max(a.evaluationSeconds, b.evaluationSeconds),
    rules: [...rules.values()].sort((one, other) => one.place - other.place),
  };
}

/** The state of a group, or of the part that a ruler evaluates. */
export function statusOf(runner: GroupRunner): RuleGroupStatus {
  const { placed, schedule, lastEvaluationMs, evaluationSeconds } = runner;
  return {
    namespace: placed.namespace,
    name: placed.group.name,
    intervalMs: schedule.intervalMs,
    limit: placed.group.limit,
    ...(lastEvaluationMs === undefined ? {} : { lastEvaluationMs }),
    evaluationSeconds,
    rules: runner.rules.map((status, i) => ruleStateOf(status, placed.places?.[i] ?? i)),
  };
}

function ruleStateOf(status: RuleStatus, place: number): RuleState {
  const { rule, work, health, lastError, lastEvaluationMs, evaluationSeconds } = status;
  const isAlerting = work instanceof AlertingRule;
  return {
    ...{ place, alert: rule.alert, record: rule.record, query: rule.query },
    ...{ forMs: rule.forMs, keepFiringForMs: rule.keepFiringForMs },
    ...{ labels: labelsOf(rule.labels), annotations: labelsOf(rule.annotations) },
    state: isAlerting ? work.state : "inactive",
    ...{ health, lastError, evaluationSeconds },
    ...(lastEvaluationMs === undefined ? {} : { lastEvaluationMs }),
    alerts: isAlerting ? work.alerts().map(alertStateOf) : [],
  };
}

function alertStateOf(alert: Alert): AlertState {
  const { labels, annotations, state, activeAtMs, keptSinceMs, value } = alert;
  const kept = keptSinceMs === undefined ? {} : { keptSinceMs };
  return { labels, annotations, state, activeAtMs, value, ...kept };
}

/** The labels as written, in their order. */
function labelsOf(labels: Readonly<Record<string, string>>): Labels {
  return { names: Object.keys(labels), values: Object.values(labels) };
}
