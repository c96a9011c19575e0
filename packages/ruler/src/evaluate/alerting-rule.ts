import type { InstantSample } from "@skald/contracts";
import type { Template } from "@skald/logql/template";
import { invalidArgument, type Labels, makeLabels } from "@skald/model";
import { expandTemplate, parseAlertTemplate } from "../rules/alert-template.js";
import type { Rule } from "../rules/rule-group.js";
import { keyOf, pairsOf, type RecordedSample, SeriesEnds } from "./series-ends.js";

/** One alert of a rule: a label set for which its expression was true. Times are ms since the epoch. */
export interface Alert {
  readonly labels: Labels;
  annotations: Labels;
  value: number;
  state: "pending" | "firing" | "inactive";
  activeAtMs: number;
  firedAtMs: number | undefined;
  resolvedAtMs: number | undefined;
  /** Since when it fires only because of `keep_firing_for`. */
  keptSinceMs: number | undefined;
  lastSentMs: number | undefined;
  validUntilMs: number;
}

interface AlertingOptions {
  /** The labels of the rule over those of its group. */
  readonly labels: Readonly<Record<string, string>>;
  readonly externalLabels: Readonly<Record<string, string>>;
  readonly externalUrl: string;
  /** Alerts at a time; 0: no limit. */
  readonly limit: number;
}

/** How long the end of an alert is sent again, ms: a receiver may have missed it. */
const resolvedRetentionMs = 15 * 60_000;

type Templates = readonly (readonly [string, Template])[];

/** The alerts of one rule, from evaluation to evaluation. */
export class AlertingRule {
  readonly rule: Rule;
  readonly #options: AlertingOptions;
  /** Templates of labels and annotations, compiled for the first sample. */
  #templates: { readonly labels: Templates; readonly annotations: Templates } | undefined;
  readonly #alerts = new Map<string, Alert>();
  readonly #ends = new SeriesEnds();

  constructor(rule: Rule, options: AlertingOptions) {
    this.rule = rule;
    this.#options = options;
  }

  /** Pending and firing alerts, and with `resolved` alerts that ended recently. */
  alerts({ resolved = false } = {}): Alert[] {
    const all = [...this.#alerts.values()];
    return resolved ? all : all.filter(({ state }) => state !== "inactive");
  }

  get state(): Alert["state"] {
    const states = this.alerts().map(({ state }) => state);
    if (states.includes("firing")) return "firing";
    return states.includes("pending") ? "pending" : "inactive";
  }

  /** Takes over alerts of an earlier run or an earlier form of the rule. */
  adopt(alerts: Iterable<Alert>): void {
    for (const alert of alerts) this.#alerts.set(keyOf(alert.labels), { ...alert });
    this.samples();
  }

  /**
   * The history of the alerts as Prometheus keeps it, after an update: for each alert that is pending or firing `ALERTS` with
   * its state, and `ALERTS_FOR_STATE` with the time of its begin in s. Series that ended since the last call are ended.
   */
  samples(): RecordedSample[] {
    const now = this.alerts().flatMap(({ labels, state, activeAtMs }): RecordedSample[] => {
      const pairs = pairsOf(labels);
      const named = makeLabels([...pairs, ["__name__", "ALERTS"], ["alertstate", state]]);
      const since = makeLabels([...pairs, ["__name__", "ALERTS_FOR_STATE"]]);
      return [
        { labels: named, value: 1 },
        { labels: since, value: Math.floor(activeAtMs / 1000) },
      ];
    });
    return this.#ends.after(now);
  }

  /** The ends of all series, for a rule that is no more. */
  endSamples(): RecordedSample[] {
    return this.#ends.after([]);
  }

  /**
   * Updates the alerts with the samples of an evaluation. Throws invalid_argument when two samples give one alert (nothing has
   * changed then), and when there are more alerts than the group may have (there are none then).
   */
  update(samples: readonly InstantSample[], nowMs: number): void {
    const found = new Map<string, Alert>();
    for (const sample of samples) {
      const alert = this.#alertOf(sample, nowMs);
      const key = keyOf(alert.labels);
      if (found.has(key))
        throw invalidArgument(
          "vector contains metrics with the same labelset after applying alert labels",
        );
      found.set(key, alert);
    }
    for (const [key, alert] of found) this.#activate(key, alert);
    for (const [key, alert] of this.#alerts) {
      if (!found.has(key)) this.#rest(key, alert, nowMs);
      else alert.keptSinceMs = undefined;
      if (alert.state !== "pending" || nowMs - alert.activeAtMs < this.rule.forMs) continue;
      alert.state = "firing";
      alert.firedAtMs = nowMs;
    }
    const { limit } = this.#options;
    const count = this.alerts().length;
    if (limit === 0 || count <= limit) return;
    this.#alerts.clear();
    throw invalidArgument(`exceeded limit of ${limit} with ${count} alerts`);
  }

  /** Returns the alerts to send now, and marks them as sent. */
  takeDue(nowMs: number, resendMs: number, validMs: number): Alert[] {
    const due = this.alerts({ resolved: true }).filter((alert) => isDue(alert, nowMs, resendMs));
    for (const alert of due) {
      alert.lastSentMs = nowMs;
      alert.validUntilMs = nowMs + validMs;
    }
    return due.map((alert) => ({ ...alert }));
  }

  #alertOf({ labels, value }: InstantSample, nowMs: number): Alert {
    const { externalLabels, externalUrl } = this.#options;
    this.#templates ??= {
      labels: this.#compiled(this.#options.labels),
      annotations: this.#compiled(this.rule.annotations),
    };
    const nowNs = BigInt(nowMs) * 1_000_000n;
    const data = { labels, externalLabels, externalUrl, value, nowNs };
    const expand = ([name, template]: readonly [string, Template]): [string, string] => [
      name,
      expandTemplate(template, data),
    ];
    return {
      labels: makeLabels([
        ...pairsOf(labels).filter(([name]) => name !== "__name__"),
        ...this.#templates.labels.map(expand),
        ["alertname", this.rule.alert],
      ]),
      annotations: makeLabels(this.#templates.annotations.map(expand)),
      value,
      state: "pending",
      activeAtMs: nowMs,
      firedAtMs: undefined,
      resolvedAtMs: undefined,
      keptSinceMs: undefined,
      lastSentMs: undefined,
      validUntilMs: 0,
    };
  }

  #compiled(texts: Readonly<Record<string, string>>): Templates {
    return Object.entries(texts).map(([name, text]) => [
      name,
      parseAlertTemplate(text, this.rule.alert),
    ]);
  }

  #activate(key: string, alert: Alert): void {
    const known = this.#alerts.get(key);
    if (known === undefined || known.state === "inactive") {
      this.#alerts.set(key, alert);
      return;
    }
    known.value = alert.value;
    known.annotations = alert.annotations;
  }

  /** Updates an alert whose expression is no longer true. */
  #rest(key: string, alert: Alert, nowMs: number): void {
    if (alert.state === "firing" && this.rule.keepFiringForMs > 0) {
      alert.keptSinceMs ??= nowMs;
      if (nowMs - alert.keptSinceMs < this.rule.keepFiringForMs) return;
    }
    const isOver =
      alert.resolvedAtMs !== undefined && nowMs - alert.resolvedAtMs > resolvedRetentionMs;
    if (alert.state === "pending" || isOver) this.#alerts.delete(key);
    if (alert.state === "inactive") return;
    alert.state = "inactive";
    alert.resolvedAtMs = nowMs;
    alert.keptSinceMs = undefined;
  }
}

function isDue(alert: Alert, nowMs: number, resendMs: number): boolean {
  if (alert.state === "pending") return false;
  const { lastSentMs, resolvedAtMs } = alert;
  if (lastSentMs === undefined) return true;
  return (resolvedAtMs ?? 0) > lastSentMs || lastSentMs + resendMs <= nowMs;
}
