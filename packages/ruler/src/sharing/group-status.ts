import type { AlertState, RuleGroupStatus, RuleState } from "@skald/contracts";
import type { Labels } from "@skald/model";
import { type Alert, AlertingRule } from "../evaluate/alerting-rule.js";
import type { GroupRunner, RuleStatus } from "../evaluate/group-runner.js";

/** A group, or the part of one that a ruler evaluates, as it stands. */
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

/** As they were written, in their order. */
function labelsOf(labels: Readonly<Record<string, string>>): Labels {
  return { names: Object.keys(labels), values: Object.values(labels) };
}
