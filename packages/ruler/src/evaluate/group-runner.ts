import { setImmediate } from "node:timers/promises";
import type { InstantQuerier, InstantSample } from "@skald/contracts";
import { type Clock, emptyLabels, errorCodeOf, fnv1a32, invalidArgument } from "@skald/model";
import { type Logger, messageWithCauses, type Semaphore, sleep } from "@skald/runtime";
import type { Metrics } from "@skald/runtime/metrics";
import { tracedApart } from "@skald/runtime/tracing";
import {
  identityOf,
  keyOfGroup,
  nameOfRule,
  type PlacedGroup,
  type Rule,
} from "../rules/rule-group.js";
import {
  type AlertKeeper,
  alertsVersion,
  newestOf,
  restoreAlerts,
  type SavedAlerts,
} from "./alert-states.js";
import { type Alert, AlertingRule } from "./alerting-rule.js";
import { RecordingRule } from "./recording-rule.js";
import type { RecordedSample } from "./series-ends.js";

export interface GroupOptions {
  /** Pause between the evaluations of the group. */
  readonly intervalMs: number;
  readonly maxJitterMs: number;
  readonly resendDelayMs: number;
  readonly outageToleranceMs: number;
  readonly gracePeriodMs: number;
  readonly externalLabels: Readonly<Record<string, string>>;
  readonly externalUrl: string;
  readonly logsQueries: boolean;
}

interface GroupDeps {
  readonly options: GroupOptions;
  readonly querier: InstantQuerier;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: GroupMetrics;
  readonly states: AlertKeeper;
  /** Keeps alerts where another ruler finds them. */
  readonly shared?: AlertKeeper | undefined;
  /** A group holds these while it is evaluated: the turns of the tenant and of the ruler. */
  readonly turns: readonly Semaphore[];
  /** Takes alerts to send. */
  readonly notify: (tenant: string, expr: string, alerts: readonly Alert[]) => void;
  /** Takes samples to write. They are safe when it resolves. Absent when samples are not written. */
  readonly record?:
    | ((tenant: string, timeMs: number, samples: readonly RecordedSample[]) => Promise<void>)
    | undefined;
}

/** A rule and the outcome of its last evaluation. */
export interface RuleStatus {
  readonly rule: Rule;
  readonly work: AlertingRule | RecordingRule;
  health: "unknown" | "ok" | "err";
  lastError: string;
  /** ms since the epoch; undefined before the first evaluation. */
  lastEvaluationMs: number | undefined;
  evaluationSeconds: number;
}

/** Evaluates the rules of one group, one after another, at the times of its schedule. */
export class GroupRunner {
  readonly placed: PlacedGroup;
  readonly key: string;
  readonly schedule: Schedule;
  readonly rules: readonly RuleStatus[];
  lastEvaluationMs: number | undefined;
  evaluationSeconds = 0;
  readonly #deps: GroupDeps;
  readonly #abort = new AbortController();
  readonly #log: Logger;
  /** The ends of series whose rules the earlier form of the group had. */
  #ends: readonly RecordedSample[] = [];
  #running: Promise<void> = Promise.resolve();
  /** Whether the last evaluation took so long that others were left out. */
  #isSlow = false;

  constructor(placed: PlacedGroup, deps: GroupDeps) {
    const { tenant, namespace, group } = placed;
    this.placed = placed;
    this.key = keyOfGroup(placed);
    this.#deps = deps;
    this.#log = deps.log.child({ tenant, namespace, group: group.name });
    this.schedule = scheduleOf(this.key, deps.options.intervalMs);
    this.rules = group.rules.map((rule) => ({
      rule,
      work: workOf(rule, placed, deps.options),
      health: "unknown",
      lastError: "",
      lastEvaluationMs: undefined,
      evaluationSeconds: 0,
    }));
  }

  /** Starts with the state of an earlier form of the group, or else with the saved state. */
  start(before?: GroupRunner): void {
    this.#running = this.#run(before);
  }

  /** Stops the evaluations. Resolves when none runs any more. */
  async stop(): Promise<void> {
    this.#abort.abort();
    await this.#running;
  }

  /** Evaluates every rule for a time, ms since the epoch. Throws only when stopped. */
  async evaluate(slotMs: number): Promise<void> {
    const { clock, metrics } = this.#deps;
    const start = performance.now();
    // The ends come before the samples of this time: a changed rule may go on with a series.
    await this.#recordEnds(slotMs - 1);
    for (const status of this.rules) {
      await this.#evaluateRule(status, slotMs);
      // Requests come between the rules of a large group, also when each is answered at once.
      await setImmediate();
    }
    this.evaluationSeconds = (performance.now() - start) / 1000;
    this.lastEvaluationMs = clock.nowMs();
    metrics.evaluated(this.placed, this.evaluationSeconds, this.lastEvaluationMs);
    await this.#save(false);
  }

  /** Leaves its alerts to another ruler. Call it once no evaluation runs. */
  async handOver(): Promise<void> {
    if (this.lastEvaluationMs === undefined) return;
    await this.#save(true);
  }

  /** Ends the series of a group that is no more. Call it once no evaluation runs. */
  async end(): Promise<void> {
    this.#ends = [...this.#ends, ...this.rules.flatMap(({ work }) => work.endSamples())];
    await this.#recordEnds(this.#deps.clock.nowMs());
  }

  /** Takes over alerts and series of rules that did not change. */
  adopt(before: GroupRunner): void {
    const left = listsBy(before.rules, ({ rule }) => identityOf(rule));
    for (const status of this.rules) {
      const other = left.get(identityOf(status.rule))?.shift();
      if (other === undefined) continue;
      const { work } = status;
      if (work instanceof AlertingRule && other.work instanceof AlertingRule)
        work.adopt(other.work.alerts({ resolved: true }));
      else if (work instanceof RecordingRule && other.work instanceof RecordingRule)
        work.adopt(other.work);
      if (other.rule.expr !== status.rule.expr) continue;
      const { health, lastError, lastEvaluationMs, evaluationSeconds } = other;
      Object.assign(status, { health, lastError, lastEvaluationMs, evaluationSeconds });
    }
    // A rule that left a part of a group may go on at another ruler.
    const gone = this.placed.places === undefined ? [...left.values()].flat() : [];
    this.#ends = [...before.#ends, ...gone.flatMap(({ work }) => work.endSamples())];
    this.lastEvaluationMs = before.lastEvaluationMs;
    this.evaluationSeconds = before.evaluationSeconds;
  }

  /** Restores alerts that this process or another ruler saved, for rules that the earlier form of the group lacks. */
  async restore(before?: GroupRunner): Promise<void> {
    const { clock, options } = this.#deps;
    const known = new Set(before?.rules.map(({ rule }) => identityOf(rule)));
    const wanted = this.rules.filter(({ rule }) => !known.has(identityOf(rule)));
    if (wanted.length === 0) return;
    const left = listsBy(newestOf(await this.#load()), (saved) => saved.rule);
    for (const { rule, work } of wanted) {
      if (!(work instanceof AlertingRule)) continue;
      const saved = left.get(identityOf(rule))?.shift();
      if (saved === undefined) continue;
      work.adopt(restoreAlerts(saved, { ...options, forMs: rule.forMs, nowMs: clock.nowMs() }));
    }
  }

  async #run(before: GroupRunner | undefined): Promise<void> {
    const { clock, metrics } = this.#deps;
    const { signal } = this.#abort;
    if (before !== undefined) this.adopt(before);
    await this.restore(before);
    let slotMs = slotBefore(this.schedule, clock.nowMs()) + this.schedule.intervalMs;
    try {
      while (!signal.aborted) {
        await sleep(Math.max(0, slotMs - clock.nowMs()) + this.#jitterMs(), signal);
        await this.#inTurn(() => this.evaluate(slotMs));
        const next = nextSlot(this.schedule, slotMs, clock.nowMs());
        if (next.missed > 0) metrics.missed(this.placed, next.missed);
        this.#tellMissed(next.missed);
        slotMs = next.slotMs;
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /** Warns once when the group begins to be too slow for its interval. */
  #tellMissed(missed: number): void {
    const wasSlow = this.#isSlow;
    this.#isSlow = missed > 0;
    if (wasSlow || missed === 0) return;
    this.#log.warn(
      "a rule group cannot keep up with its interval and leaves evaluations out: give it a longer interval or fewer rules",
      {
        missed,
        rules: this.rules.length,
        seconds: this.evaluationSeconds,
        interval_seconds: this.schedule.intervalMs / 1000,
      },
    );
  }

  /** Runs the task in this group's turn. */
  async #inTurn(task: () => Promise<void>): Promise<void> {
    const { signal } = this.#abort;
    const releases: (() => void)[] = [];
    try {
      for (const turn of this.#deps.turns) releases.push(await turn.acquire({ signal }));
      await task();
    } finally {
      for (const release of releases) release();
    }
  }

  #jitterMs(): number {
    const { maxJitterMs } = this.#deps.options;
    return maxJitterMs > 0 ? fnv1a32("jitter", this.key) % maxJitterMs : 0;
  }

  async #evaluateRule(status: RuleStatus, slotMs: number): Promise<void> {
    const { clock, metrics, options } = this.#deps;
    const { signal } = this.#abort;
    signal.throwIfAborted();
    const start = performance.now();
    let error: unknown;
    try {
      const { tenant, group } = this.placed;
      const attributes = {
        tenant,
        "skald.rule_group": group.name,
        "skald.rule": nameOfRule(status.rule),
      };
      await tracedApart("rule evaluation", { attributes }, () => this.#work(status, slotMs));
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      error = thrown;
    }
    status.evaluationSeconds = (performance.now() - start) / 1000;
    status.lastEvaluationMs = clock.nowMs();
    status.health = error === undefined ? "ok" : "err";
    status.lastError = error === undefined ? "" : textOf(error);
    metrics.ruleEvaluated(this.placed, status.evaluationSeconds, error !== undefined);
    const facts = { rule: nameOfRule(status.rule), seconds: status.evaluationSeconds };
    if (error !== undefined) this.#log.warn("a rule could not be evaluated", { ...facts, error });
    else if (options.logsQueries) this.#log.info("evaluated a rule", facts);
  }

  async #work({ rule, work }: RuleStatus, slotMs: number): Promise<void> {
    const { notify, options, record } = this.#deps;
    const { tenant } = this.placed;
    const samples = await this.#query(rule.expr, slotMs);
    const timeMs = slotMs - (this.placed.group.queryOffsetMs ?? 0);
    if (work instanceof RecordingRule) {
      const recorded = work.update(samples);
      await record?.(tenant, timeMs, recorded);
      return;
    }
    try {
      work.update(samples, slotMs);
    } finally {
      const validMs = 4 * Math.max(this.schedule.intervalMs, options.resendDelayMs);
      const due = work.takeDue(slotMs, options.resendDelayMs, validMs);
      if (due.length > 0) notify(tenant, rule.expr, due);
    }
    if (record !== undefined) await record(tenant, timeMs, work.samples());
  }

  async #recordEnds(ms: number): Promise<void> {
    const { record } = this.#deps;
    const ends = this.#ends;
    this.#ends = [];
    if (record === undefined || ends.length === 0) return;
    const { tenant, group } = this.placed;
    try {
      await record(tenant, ms - (group.queryOffsetMs ?? 0), ends);
    } catch (error) {
      this.#log.error("the ends of series cannot be written", { error });
    }
  }

  async #query(query: string, slotMs: number): Promise<readonly InstantSample[]> {
    const { group, tenant } = this.placed;
    const timeNs = BigInt(slotMs - (group.queryOffsetMs ?? 0)) * 1_000_000n;
    const { signal } = this.#abort;
    const answer = await this.#deps.querier.instant({ tenant, query, timeNs }, { signal });
    if (answer.kind === "vector") return answer.samples;
    if (answer.kind === "scalar") return [{ labels: emptyLabels, value: answer.value }];
    throw invalidArgument("rule result is not a vector or scalar");
  }

  async #save(isLast: boolean): Promise<void> {
    const { states, shared } = this.#deps;
    const saved = this.#saved();
    try {
      await states.save(saved);
      await shared?.save(saved, { isLast });
    } catch (error) {
      this.#log.error("the state of alerts cannot be saved", { error });
    }
  }

  /** Loads saved alerts. Alerts that cannot be read start over. */
  async #load(): Promise<SavedAlerts[]> {
    const { states, shared } = this.#deps;
    try {
      return [...(await states.load(this.key)), ...((await shared?.load(this.key)) ?? [])];
    } catch (error) {
      this.#log.error("the alerts of the ruler before cannot be read", { error });
      return [...(await states.load(this.key))];
    }
  }

  #saved(): SavedAlerts {
    const rules = this.rules.flatMap(({ rule, work }) =>
      work instanceof AlertingRule
        ? [{ rule: identityOf(rule), alerts: work.alerts({ resolved: true }) }]
        : [],
    );
    const savedAtMs = this.lastEvaluationMs ?? 0;
    return { version: alertsVersion, group: this.key, savedAtMs, rules };
  }
}

/** Groups items by a key, in their order. */
function listsBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const lists = new Map<string, T[]>();
  for (const item of items) {
    const list = lists.get(keyOf(item));
    if (list === undefined) lists.set(keyOf(item), [item]);
    else list.push(item);
  }
  return lists;
}

function workOf(rule: Rule, { group }: PlacedGroup, options: GroupOptions) {
  const labels = { ...group.labels, ...rule.labels };
  if (rule.alert === "") return new RecordingRule(rule, labels, group.limit);
  const { externalLabels, externalUrl } = options;
  return new AlertingRule(rule, { labels, externalLabels, externalUrl, limit: group.limit });
}

/** The text of an error in the rules API, which hides faults of the program. */
function textOf(error: unknown): string {
  return errorCodeOf(error) === "internal" ? "internal server error" : messageWithCauses(error);
}

/**
 * The times at which a group is evaluated, `offset + n * interval`, in ms since the epoch. The offset comes from the name of the group, so
 * that the groups of a ruler spread over the interval and a restart changes nothing.
 */
interface Schedule {
  readonly intervalMs: number;
  readonly offsetMs: number;
}

export function scheduleOf(key: string, intervalMs: number): Schedule {
  return { intervalMs, offsetMs: fnv1a32(key) % intervalMs };
}

/** The last time of the schedule that is not after `ms`. */
export function slotBefore({ intervalMs, offsetMs }: Schedule, ms: number): number {
  return Math.floor((ms - offsetMs) / intervalMs) * intervalMs + offsetMs;
}

/** The slot after an evaluation that was meant for `slotMs` and ended at `nowMs`, and the slots missed until then. */
export function nextSlot(
  schedule: Schedule,
  slotMs: number,
  nowMs: number,
): { readonly slotMs: number; readonly missed: number } {
  const { intervalMs } = schedule;
  const last = slotBefore(schedule, nowMs);
  // A clock that was set back must not stop the group.
  if (last < slotMs - intervalMs) return { slotMs: last + intervalMs, missed: 0 };
  // The slot that has begun in the meantime is late but not lost.
  const missed = Math.max(0, (last - slotMs) / intervalMs - 1);
  return { slotMs: slotMs + (missed + 1) * intervalMs, missed };
}

/** The metrics of groups, under the names that dashboards of rules ask for. */
export class GroupMetrics {
  readonly #hidesGroups: boolean;
  readonly #counters;
  readonly #gauges;
  readonly #seconds;

  constructor(metrics: Metrics, options: { readonly hidesGroups: boolean }) {
    const labels = ["user", "rule_group"];
    const counter = (name: string, help: string) =>
      metrics.counter(`prometheus_rule_${name}_total`, help, labels);
    const gauge = (name: string, help: string) =>
      metrics.gauge(`prometheus_rule_group_${name}`, help, labels);
    const seconds = (name: string, help: string) =>
      metrics.histogram(`prometheus_rule_${name}_duration_seconds`, help, ["user"]);
    this.#hidesGroups = options.hidesGroups;
    this.#counters = {
      evaluations: counter("evaluations", "Evaluations of rules."),
      failures: counter("evaluation_failures", "Evaluations that failed."),
      iterations: counter("group_iterations", "Evaluations of groups that were due."),
      missed: counter(
        "group_iterations_missed",
        "Evaluations of groups left out for want of time.",
      ),
    };
    this.#gauges = {
      rules: gauge("rules", "Rules of the group."),
      interval: gauge("interval_seconds", "Time between evaluations."),
      seconds: gauge("last_duration_seconds", "Time of the last evaluation."),
      last: gauge("last_evaluation_timestamp_seconds", "When it was evaluated last."),
    };
    this.#seconds = {
      rule: seconds("evaluation", "Time that rules took."),
      group: seconds("group", "Time that groups took."),
    };
  }

  /** Adds a group that is evaluated from now on. */
  added(placed: PlacedGroup, intervalMs: number): void {
    const labels = this.#labels(placed);
    this.#gauges.rules.set(labels, placed.group.rules.length);
    this.#gauges.interval.set(labels, intervalMs / 1000);
    for (const counter of Object.values(this.#counters)) counter.inc(labels, 0);
  }

  removed(placed: PlacedGroup): void {
    if (this.#hidesGroups) return;
    const metrics = [...Object.values(this.#counters), ...Object.values(this.#gauges)];
    for (const metric of metrics) metric.remove(this.#labels(placed));
  }

  ruleEvaluated(placed: PlacedGroup, seconds: number, failed: boolean): void {
    const labels = this.#labels(placed);
    this.#counters.evaluations.inc(labels);
    if (failed) this.#counters.failures.inc(labels);
    this.#seconds.rule.observe({ user: placed.tenant }, seconds);
  }

  evaluated(placed: PlacedGroup, seconds: number, nowMs: number): void {
    const labels = this.#labels(placed);
    this.#counters.iterations.inc(labels);
    this.#seconds.group.observe({ user: placed.tenant }, seconds);
    this.#gauges.seconds.set(labels, seconds);
    this.#gauges.last.set(labels, nowMs / 1000);
  }

  missed(placed: PlacedGroup, count: number): void {
    this.#counters.missed.inc(this.#labels(placed), count);
    this.#counters.iterations.inc(this.#labels(placed), count);
  }

  #labels({ tenant, namespace, group }: PlacedGroup) {
    return { user: tenant, rule_group: this.#hidesGroups ? "" : `${namespace};${group.name}` };
  }
}
