import { describe, expect, it } from "@jest/globals";
import { labelsFromObject, labelsToObject } from "@skald/model";
import { readGroup } from "../rules/group-yaml.js";
import type { Rule } from "../rules/rule-group.js";
import { restoreAlerts } from "./alert-states.js";
import { AlertingRule } from "./alerting-rule.js";
import { nextSlot, scheduleOf, slotBefore } from "./group-runner.js";
import { RecordingRule } from "./recording-rule.js";

const sample = (labels: Record<string, string>, value = 1) => ({
  labels: labelsFromObject(labels),
  value,
});

function alerting(rule: string, limit = 0): AlertingRule {
  const [read] = readGroup(`name: g\nrules: [{alert: A, expr: x, ${rule}}]`).rules as [Rule];
  return new AlertingRule(read, {
    labels: read.labels,
    externalLabels: {},
    externalUrl: "",
    limit,
  });
}

describe("an alert", () => {
  it("waits, fires, is kept, and ends", () => {
    const work = alerting("for: 2m, keep_firing_for: 1m, labels: {l: '{{ $labels.a }}!'}");
    const found = [sample({ a: "b", __name__: "n" })];
    work.update(found, 0);
    expect(work.state).toBe("pending");
    expect(work.takeDue(0, 60_000, 1)).toEqual([]);
    work.update(found, 119_000);
    expect(work.state).toBe("pending");
    work.update(found, 120_000);
    expect(work.state).toBe("firing");
    const [sent] = work.takeDue(120_000, 60_000, 240_000);
    expect(labelsToObject(sent!.labels)).toEqual({ a: "b", alertname: "A", l: "b!" });
    expect(sent).toMatchObject({ validUntilMs: 360_000, activeAtMs: 0, firedAtMs: 120_000 });
    expect(work.takeDue(150_000, 60_000, 1)).toEqual([]);
    work.update([], 180_000);
    expect(work.state).toBe("firing");
    work.update([], 240_000);
    expect(work.state).toBe("inactive");
    expect(work.takeDue(240_000, 60_000, 1)).toMatchObject([
      { state: "inactive", resolvedAtMs: 240_000 },
    ]);
    work.update([], 240_000 + 15 * 60_000 + 1);
    expect(work.alerts({ resolved: true })).toEqual([]);
  });

  it("that did not fire is forgotten", () => {
    const work = alerting("for: 2m");
    work.update([sample({})], 0);
    work.update([], 60_000);
    expect(work.alerts({ resolved: true })).toEqual([]);
  });

  it("is refused where two samples give the same, and where there are too many", () => {
    const work = alerting("labels: {a: same}", 1);
    expect(() => work.update([sample({ a: "1" }), sample({ a: "2" })], 0)).toThrow(/same labelset/);
    expect(() => work.update([sample({ b: "1" }), sample({ b: "2" })], 0)).toThrow(
      "exceeded limit of 1 with 2 alerts",
    );
    expect(work.alerts()).toEqual([]);
  });

  it("has a history: ALERTS and ALERTS_FOR_STATE, and the ends of both", () => {
    const work = alerting("for: 1m, labels: {l: m}");
    const samplesAt = (nowMs: number, found: ReturnType<typeof sample>[]) => {
      work.update(found, nowMs);
      return work.samples().map(({ labels, value }) => [labelsToObject(labels), value]);
    };
    const labels = { a: "b", alertname: "A", l: "m" };
    const alerts = (alertstate: string) => ({ ...labels, __name__: "ALERTS", alertstate });
    const since = { ...labels, __name__: "ALERTS_FOR_STATE" };
    expect(samplesAt(5500, [sample({ a: "b" })])).toEqual([
      [alerts("pending"), 1],
      [since, 5],
    ]);
    expect(samplesAt(65_500, [sample({ a: "b" })])).toEqual([
      [alerts("firing"), 1],
      [since, 5],
      [alerts("pending"), undefined],
    ]);
    // The rule of the next run of the process ends the series of this one.
    const next = alerting("for: 1m, labels: {l: m}");
    next.adopt(work.alerts({ resolved: true }));
    next.update([], 125_500);
    const ends = next.samples().map((one) => [labelsToObject(one.labels), one.value]);
    expect(ends).toEqual([
      [alerts("firing"), undefined],
      [since, undefined],
    ]);
    expect(samplesAt(125_500, [])).toEqual(ends);
    expect(samplesAt(185_500, [])).toEqual([]);
  });

  it("goes on after an outage that was short enough", () => {
    const work = alerting("for: 30m");
    work.update([sample({})], 0);
    const options = { forMs: 1_800_000, outageToleranceMs: 3_600_000, gracePeriodMs: 600_000 };
    const restored = (savedAtMs: number, nowMs: number) =>
      restoreAlerts({ savedAtMs, alerts: work.alerts() }, { ...options, nowMs })[0]?.activeAtMs;
    expect(restored(60_000, 120_000)).toBe(60_000);
    // It had five minutes left, and waits for the grace period of ten.
    expect(restored(1_500_000, 1_600_000)).toBe(1_600_000 + 600_000 - 1_800_000);
    expect(restored(60_000, 4_000_000)).toBeUndefined();
  });
});

it("a recording rule names its series and tells their end once", () => {
  const [rule] = readGroup("name: g\nrules: [{record: r, expr: x, labels: {t: u, a: ''}}]")
    .rules as [Rule];
  const work = new RecordingRule(rule, rule.labels, 2);
  const plain = (samples: ReturnType<RecordingRule["update"]>) =>
    samples.map(({ labels, value }) => [labelsToObject(labels), value]);
  const series = { __name__: "r", b: "c", t: "u" };
  expect(plain(work.update([sample({ a: "1", b: "c", __name__: "old" }, 5)]))).toEqual([
    [series, 5],
  ]);
  expect(plain(work.update([]))).toEqual([[series, undefined]]);
  expect(work.update([])).toEqual([]);
  expect(() => work.update([sample({ a: "1" }), sample({ a: "2" })])).toThrow(/same labelset/);
  expect(() => work.update(["x", "y", "z"].map((b) => sample({ b })))).toThrow(
    "exceeded limit of 2 with 3 series",
  );
});

describe("a schedule", () => {
  it("spreads groups and keeps their times", () => {
    const offsets = Array.from(
      { length: 1000 },
      (_, i) => scheduleOf(`t/n/g${i}`, 60_000).offsetMs,
    );
    const perQuarter = [0, 0, 0, 0];
    for (const offset of offsets) perQuarter[Math.floor(offset / 15_000)]!++;
    expect(Math.min(...perQuarter)).toBeGreaterThan(200);
    const schedule = { intervalMs: 60_000, offsetMs: 1000 };
    expect(slotBefore(schedule, 61_000)).toBe(61_000);
    expect(slotBefore(schedule, 60_999)).toBe(1000);
  });

  it.each([
    ["in time", 61_000 + 500, { slotMs: 121_000, missed: 0 }],
    ["longer than the interval", 121_000 + 500, { slotMs: 121_000, missed: 0 }],
    ["longer than two", 181_000 + 500, { slotMs: 181_000, missed: 1 }],
    ["a clock set back by an hour", 61_000 - 3_600_000, { slotMs: 121_000 - 3_600_000, missed: 0 }],
  ])("goes on after an evaluation %s", (_, nowMs, want) => {
    expect(nextSlot({ intervalMs: 60_000, offsetMs: 1000 }, 61_000, nowMs)).toEqual(want);
  });
});
