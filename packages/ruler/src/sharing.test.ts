import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import type { RuleGroupStatus, RuleState } from "@skald/contracts";
import { emptyLabels, unavailable } from "@skald/model";
import { field, readSchema, Settings } from "@skald/runtime/config";
import { silentLogger } from "@skald/runtime/log";
import { Metrics } from "@skald/runtime/metrics";
import { MemoryStore } from "@skald/storage";
import { AllRulers, mergeGroups } from "./all-rulers.js";
import { type RulerConfig, rulerKeys } from "./config.js";
import { AlertStates, SharedAlerts } from "./evaluate/alert-states.js";
import type { Alert } from "./evaluate/alerting-rule.js";
import { Ruler } from "./ruler.js";
import { readGroup } from "./rules/group-yaml.js";
import { ObjectRuleStore } from "./rules/rule-store.js";
import { testTexts } from "./testing/rule-texts.js";

const { signal } = new AbortController();
const log = silentLogger();
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "rulers-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const groupText = `
name: shop
interval: 1m
rules:
  - { alert: Down, expr: vector(1), for: 30m }
  - { alert: Slow, expr: vector(1) }
  - { record: up, expr: vector(1) }
`;

/** Rulers on one store that share rules out as `ownerOf` says, by the place in a list of names. */
function rulersOf(names: readonly string[], { byRule = false } = {}) {
  const schema = readSchema(field.section("", rulerKeys));
  const usual = new Settings(schema).build() as unknown as RulerConfig;
  const data = new MemoryStore();
  const time = { ms: 1_700_000_000_000 };
  const clock = { nowMs: () => time.ms };
  const owners = { of: (_names: readonly string[]): string => names[0]! };
  const rulers = names.map((name) => {
    const config = {
      ...usual,
      sharding_algo: byRule ? "by-rule" : "by-group",
      wal: { ...usual.wal, dir: join(folder, name) },
    } as RulerConfig;
    const ruler = new Ruler({
      ...{ config, clock, log, metrics: new Metrics() },
      store: new ObjectRuleStore({
        ...{ store: data, texts: testTexts(), nowMs: clock.nowMs },
        onCorrupt: () => undefined,
      }),
      querier: { instant: async () => ({ kind: "scalar", value: 1 }) },
      limitsOf: () => ({
        ruler_max_rules_per_rule_group: 0,
        ruler_max_rule_groups_per_tenant: 0,
        ruler_min_rule_evaluation_interval: 0,
        ruler_remote_write_disabled: false,
        ruler_remote_write_config: {},
      }),
      owns: (_tenant, owned) => owners.of(owned) === name,
      sharedAlerts: new SharedAlerts({ store: data, clock }),
    });
    return { id: name, ruler, rules: ruler.rules };
  });
  const placed = { tenant: "t", namespace: "n", group: readGroup(groupText) };
  const syncAll = async () => {
    for (const { ruler } of rulers) await ruler.sync();
  };
  return {
    ...{ rulers, owners, time, placed, syncAll },
    start: async () => {
      for (const { ruler } of rulers) await ruler.start();
      await rulers[0]?.ruler.set(placed, { signal });
      await syncAll();
    },
    stop: async () => {
      for (const { ruler } of rulers) await ruler.stop();
    },
    counts: () => rulers.map(({ ruler }) => ruler.groupsOf("t").length),
  };
}

describe("rulers that share groups out", () => {
  it("evaluate each on one of them, which leaves its alerts to the next", async () => {
    const all = rulersOf(["a", "b"]);
    await all.start();
    expect(all.counts()).toEqual([1, 0]);
    const begunMs = all.time.ms;
    await all.rulers[0]?.ruler.groupsOf("t")[0]?.evaluate(begunMs);
    all.time.ms += 20 * 60_000;
    await all.rulers[0]?.ruler.groupsOf("t")[0]?.evaluate(all.time.ms);
    all.owners.of = () => "b";
    await all.syncAll();
    expect(all.counts()).toEqual([0, 1]);
    const next = all.rulers[1]?.ruler.groupsOf("t")[0];
    await next?.restore();
    const [down] =
      (await all.rulers[1]?.rules.groups({ tenant: "t" }, { signal }))?.[0]?.rules ?? [];
    expect(down?.alerts.map(({ state, activeAtMs }) => [state, activeAtMs])).toEqual([
      ["pending", begunMs],
    ]);
    await all.stop();
  });

  it("find the alerts of one that was killed, a little older", async () => {
    const all = rulersOf(["a", "b"]);
    await all.start();
    const begunMs = all.time.ms;
    await all.rulers[0]?.ruler.groupsOf("t")[0]?.evaluate(begunMs);
    // Nobody tells the first one: it is dead.
    all.time.ms += 60_000;
    all.owners.of = () => "b";
    await all.rulers[1]?.ruler.sync();
    const next = all.rulers[1]?.ruler.groupsOf("t")[0];
    await next?.restore();
    const states = next?.rules.slice(0, 2).map(({ work }) => ("state" in work ? work.state : ""));
    expect(states).toEqual(["pending", "firing"]);
    await all.stop();
  });

  it("forget alerts with their group", async () => {
    const all = rulersOf(["a", "b"]);
    await all.start();
    const [first] = all.rulers;
    await first?.ruler.groupsOf("t")[0]?.evaluate(all.time.ms);
    const shared = new SharedAlerts({ store: new MemoryStore(), clock: { nowMs: () => 0 } });
    expect(await shared.load("t/n/shop")).toEqual([]);
    await first?.ruler.delete({ tenant: "t", namespace: "n", name: "shop" }, { signal });
    await all.syncAll();
    await first?.ruler.set(all.placed, { signal });
    await all.syncAll();
    const again = first?.ruler.groupsOf("t")[0];
    await again?.restore();
    expect(again?.rules.map(({ work }) => ("state" in work ? work.state : ""))).toEqual([
      "inactive",
      "inactive",
      "",
    ]);
    await all.stop();
  });

  it("leave alerts of a newer version as they are", async () => {
    const store = new MemoryStore();
    const shared = () => new SharedAlerts({ store, clock: { nowMs: () => 0 } });
    const alert: Alert = {
      ...{ labels: emptyLabels, annotations: emptyLabels, value: 1, state: "firing" },
      ...{ activeAtMs: 1, firedAtMs: 2, resolvedAtMs: undefined, keptSinceMs: undefined },
      ...{ lastSentMs: undefined, validUntilMs: 9 },
    };
    const rules = [{ rule: "r", alerts: [alert] }];
    const saved = { version: 1, group: "g", savedAtMs: 5, rules } as const;
    await shared().save(saved);
    expect(await shared().load("g")).toMatchObject([{ group: "g", savedAtMs: 5 }]);
    let key = "";
    for await (const object of store.list("", { signal })) key = object.key;
    const good = Buffer.from(await store.get(key, { signal })).toString();
    const newer = good.replace('"version":1', '"version":2');
    await store.put(key, Buffer.from(newer), { signal });
    const later = shared();
    await expect(later.load("g")).rejects.toMatchObject({ code: "newer_version" });
    await later.save({ ...saved, savedAtMs: 6 }, { isLast: true });
    await later.remove("g");
    expect(Buffer.from(await store.get(key, { signal })).toString()).toBe(newer);

    const directory = join(folder, "alerts");
    const states = new AlertStates(directory);
    await states.open();
    await states.save(saved);
    const [name = ""] = readdirSync(directory);
    writeFileSync(join(directory, name), newer);
    writeFileSync(join(directory, "x.tmp"), "left");
    await expect(new AlertStates(directory).open()).rejects.toMatchObject({
      code: "newer_version",
    });
    expect(readdirSync(directory).sort()).toEqual([name, "x.tmp"].sort());
  });

  it("share the rules of a group with by-rule, and answer for all of them", async () => {
    const all = rulersOf(["a", "b"], { byRule: true });
    all.owners.of = (names) => (names.at(-1)?.includes("Slow") ? "b" : "a");
    await all.start();
    const [a, b] = all.rulers;
    expect(a?.ruler.groupsOf("t")[0]?.rules.map(({ rule }) => rule.alert)).toEqual(["Down", ""]);
    expect(b?.ruler.groupsOf("t")[0]?.rules.map(({ rule }) => rule.alert)).toEqual(["Slow"]);
    if (a === undefined || b === undefined) throw new Error("there are two");
    const asB = new AllRulers({ own: b.rules, others: () => [a], timeoutMs: 1000, log });
    const { groups, warnings } = await asB.groups("t", { signal });
    expect(groups.map(({ name, rules }) => [name, rules.map(({ place }) => place)])).toEqual([
      ["shop", [0, 1, 2]],
    ]);
    expect(warnings).toEqual([]);
    await all.stop();
  });
});

it("tells what is missing when a ruler does not answer", async () => {
  const own = { groups: async () => [groupOf("n", "own")], changed: async () => undefined };
  const dead = {
    groups: () => Promise.reject(unavailable("gone")),
    changed: () => Promise.reject(unavailable("gone")),
  };
  const others = () => [{ id: "r2", rules: dead }];
  const rulers = new AllRulers({ own, others, timeoutMs: 1000, log });
  rulers.tellChanged();
  const { groups, warnings } = await rulers.groups("t", { signal });
  expect(groups.map(({ name }) => name)).toEqual(["own"]);
  expect(warnings).toEqual(["the rules of ruler r2 are missing: it does not answer"]);
});

function groupOf(namespace: string, name: string, rules: readonly RuleState[] = []) {
  const times = { intervalMs: 60_000, evaluationSeconds: 0 };
  return { namespace, name, limit: 0, ...times, rules } satisfies RuleGroupStatus;
}

it("takes the newer state of a rule that two evaluate", () => {
  const rule = (lastEvaluationMs: number): RuleState => ({
    ...{ place: 0, alert: "A", record: "", query: "vector(1)", forMs: 0, keepFiringForMs: 0 },
    ...{ labels: emptyLabels, annotations: emptyLabels, state: "inactive", health: "ok" },
    ...{ lastError: "", lastEvaluationMs, evaluationSeconds: 0, alerts: [] },
  });
  const parts = [1, 3, 2].map((ms) => groupOf("n", "g", [rule(ms)]));
  const merged = mergeGroups([groupOf("n", "h"), ...parts]);
  expect(merged.map(({ name }) => name)).toEqual(["g", "h"]);
  expect(merged[0]?.rules.map(({ lastEvaluationMs }) => lastEvaluationMs)).toEqual([3]);
});
