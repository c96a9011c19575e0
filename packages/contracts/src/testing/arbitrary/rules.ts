import fc from "fast-check";
import type { RuleGroupStatus, RuleState } from "../../index.js";
import { count, labels, number, record, text, u32 } from "./common.js";

const words = fc.constantFrom("inactive", "pending", "firing");

const alertState: fc.Arbitrary<RuleState["alerts"][number]> = record<
  RuleState["alerts"][number],
  "keptSinceMs"
>(
  { labels, annotations: labels, value: number, state: words, activeAtMs: count },
  { keptSinceMs: count },
);

const ruleState: fc.Arbitrary<RuleState> = record<RuleState, "lastEvaluationMs">(
  {
    ...{ place: u32, alert: text, record: text, query: text, forMs: count, labels },
    ...{ keepFiringForMs: count, annotations: labels, state: words, lastError: text },
    health: fc.constantFrom("unknown", "ok", "err"),
    evaluationSeconds: number,
    alerts: fc.array(alertState, { maxLength: 2 }),
  },
  { lastEvaluationMs: count },
);

export const arbitraryRuleGroup: fc.Arbitrary<RuleGroupStatus> = record<
  RuleGroupStatus,
  "lastEvaluationMs"
>(
  {
    ...{ namespace: text, name: text, intervalMs: count, limit: u32, evaluationSeconds: number },
    rules: fc.array(ruleState, { maxLength: 2 }),
  },
  { lastEvaluationMs: count },
);
