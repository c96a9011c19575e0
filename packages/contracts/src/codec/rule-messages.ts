import type { Labels } from "@skald/model";
import {
  double,
  field,
  type MessageCodec,
  mapped,
  message,
  oneOf,
  optional,
  repeated,
  text,
  uint,
} from "@skald/transport/protobuf";
import type { AlertState, RuleGroupStatus, RuleGroupsRequest, RuleState } from "../rules.js";

interface WireLabels {
  readonly names: readonly string[];
  readonly values: readonly string[];
}

/** Few labels: each name and value as it is. */
const labels: MessageCodec<Labels> = mapped(
  message<WireLabels>(
    { names: repeated(1, text), values: repeated(2, text) },
    ({ names, values }) => (names.length === values.length ? undefined : "labels are not complete"),
  ),
  ({ names, values }) => ({ names, values }),
  ({ names, values }) => ({ names, values }),
);

const state = oneOf(["inactive", "pending", "firing"]);

const alert: MessageCodec<AlertState> = message<AlertState>({
  labels: field(1, labels),
  annotations: field(2, labels),
  value: field(3, double),
  state: field(4, state),
  activeAtMs: field(5, double),
  keptSinceMs: optional(6, double),
});

const rule: MessageCodec<RuleState> = message<RuleState>({
  place: field(1, uint),
  alert: field(2, text),
  record: field(3, text),
  query: field(4, text),
  forMs: field(5, double),
  keepFiringForMs: field(6, double),
  labels: field(7, labels),
  annotations: field(8, labels),
  state: field(9, state),
  health: field(10, oneOf(["unknown", "ok", "err"])),
  lastError: field(11, text),
  lastEvaluationMs: optional(12, double),
  evaluationSeconds: field(13, double),
  alerts: repeated(14, alert),
});

const group: MessageCodec<RuleGroupStatus> = message<RuleGroupStatus>({
  namespace: field(1, text),
  name: field(2, text),
  intervalMs: field(3, double),
  limit: field(4, uint),
  lastEvaluationMs: optional(5, double),
  evaluationSeconds: field(6, double),
  rules: repeated(7, rule),
});

export const ruleGroupsRequest: MessageCodec<RuleGroupsRequest> = message<RuleGroupsRequest>({
  tenant: field(1, text),
});

export const ruleGroupsAnswer: MessageCodec<{ readonly groups: readonly RuleGroupStatus[] }> =
  message<{ readonly groups: readonly RuleGroupStatus[] }>({ groups: repeated(1, group) });
