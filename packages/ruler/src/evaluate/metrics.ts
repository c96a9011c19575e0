import type { Metrics } from "@skald/runtime/metrics";
import type { PlacedGroup } from "../rules/rule-group.js";

/** Counts what groups do, under the names that dashboards of rules ask for. */
export class GroupMetrics {
  readonly #hidesGroups: boolean;
  readonly #evaluations;
  readonly #failures;
  readonly #ruleSeconds;
  readonly #groupSeconds;
  readonly #iterations;
  readonly #missed;
  readonly #gauges;

  constructor(metrics: Metrics, options: { readonly hidesGroups: boolean }) {
    const labels = ["user", "rule_group"];
    const count = (name: string, help: string) =>
      metrics.counter(`prometheus_${name}`, help, labels);
    const gauge = (name: string, help: string) => metrics.gauge(`prometheus_${name}`, help, labels);
    this.#hidesGroups = options.hidesGroups;
    this.#evaluations = count("rule_evaluations_total", "Evaluations of rules.");
    this.#failures = count("rule_evaluation_failures_total", "Evaluations that failed.");
    this.#iterations = count("rule_group_iterations_total", "Evaluations of groups that were due.");
    this.#missed = count(
      "rule_group_iterations_missed_total",
      "Evaluations of groups left out for want of time.",
    );
    this.#ruleSeconds = metrics.histogram(
      "prometheus_rule_evaluation_duration_seconds",
      "Time that rules took.",
      ["user"],
    );
    this.#groupSeconds = metrics.histogram(
      "prometheus_rule_group_duration_seconds",
      "Time that groups took.",
      ["user"],
    );
    this.#gauges = {
      rules: gauge("rule_group_rules", "Rules of the group."),
      interval: gauge("rule_group_interval_seconds", "Time between evaluations."),
      seconds: gauge("rule_group_last_duration_seconds", "Time of the last evaluation."),
      last: gauge("rule_group_last_evaluation_timestamp_seconds", "When it was evaluated last."),
    };
  }

  /** A group that is evaluated from now on. */
  added(placed: PlacedGroup, intervalMs: number): void {
    const labels = this.#labels(placed);
    this.#gauges.rules.set(labels, placed.group.rules.length);
    this.#gauges.interval.set(labels, intervalMs / 1000);
    for (const counter of [this.#evaluations, this.#failures, this.#iterations, this.#missed])
      counter.inc(labels, 0);
  }

  removed(placed: PlacedGroup): void {
    const labels = this.#labels(placed);
    if (this.#hidesGroups) return;
    for (const metric of [this.#evaluations, this.#failures, this.#iterations, this.#missed])
      metric.remove(labels);
    for (const gauge of Object.values(this.#gauges)) gauge.remove(labels);
  }

  ruleEvaluated(placed: PlacedGroup, seconds: number, failed: boolean): void {
    const labels = this.#labels(placed);
    this.#evaluations.inc(labels);
    if (failed) this.#failures.inc(labels);
    this.#ruleSeconds.observe({ user: placed.tenant }, seconds);
  }

  evaluated(placed: PlacedGroup, seconds: number, nowMs: number): void {
    const labels = this.#labels(placed);
    this.#iterations.inc(labels);
    this.#groupSeconds.observe({ user: placed.tenant }, seconds);
    this.#gauges.seconds.set(labels, seconds);
    this.#gauges.last.set(labels, nowMs / 1000);
  }

  missed(placed: PlacedGroup, count: number): void {
    this.#missed.inc(this.#labels(placed), count);
    this.#iterations.inc(this.#labels(placed), count);
  }

  #labels({ tenant, namespace, group }: PlacedGroup) {
    return { user: tenant, rule_group: this.#hidesGroups ? "" : `${namespace};${group.name}` };
  }
}
