import type { Labels } from "@skald/model";
import type { CallOptions } from "./call.js";

/** What rulers tell each other, so that each can answer for all. */
export interface Rules {
  /** The groups, or parts of groups, that this ruler evaluates for a tenant. */
  groups(request: RuleGroupsRequest, options: CallOptions): Promise<readonly RuleGroupStatus[]>;
  /** Stored rules were changed: they are read again soon. */
  changed(options: CallOptions): Promise<void>;
}

export interface RuleGroupsRequest {
  readonly tenant: string;
}

/** A group and how it does; times are ms since the epoch. */
export interface RuleGroupStatus {
  readonly namespace: string;
  readonly name: string;
  readonly intervalMs: number;
  /** Alerts or samples that one rule may make; 0: no limit. */
  readonly limit: number;
  /** Absent before the first. */
  readonly lastEvaluationMs?: number;
  readonly evaluationSeconds: number;
  readonly rules: readonly RuleState[];
}

export interface RuleState {
  /** Where it is among the rules of its group. */
  readonly place: number;
  /** Of `alert` and `record` one is its name, the other is empty. */
  readonly alert: string;
  readonly record: string;
  /** The expression as it is printed. */
  readonly query: string;
  readonly forMs: number;
  readonly keepFiringForMs: number;
  readonly labels: Labels;
  readonly annotations: Labels;
  readonly state: AlertState["state"];
  readonly health: "unknown" | "ok" | "err";
  readonly lastError: string;
  readonly lastEvaluationMs?: number;
  readonly evaluationSeconds: number;
  /** Pending and firing ones. */
  readonly alerts: readonly AlertState[];
}

export interface AlertState {
  readonly labels: Labels;
  readonly annotations: Labels;
  readonly value: number;
  readonly state: "inactive" | "pending" | "firing";
  readonly activeAtMs: number;
  /** Since when it fires only because of `keep_firing_for`. */
  readonly keptSinceMs?: number;
}
