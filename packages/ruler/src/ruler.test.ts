import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { labelsToObject, systemClock } from "@skald/model";
import type { JobOptions, WorkerPool } from "@skald/runtime";
import { field, readSchema, Settings } from "@skald/runtime/config";
import { createLogger, silentLogger } from "@skald/runtime/log";
import { Metrics } from "@skald/runtime/metrics";
import { MemoryStore } from "@skald/storage";
import { until } from "@skald/testkit";
import type { HttpResponse, Route } from "@skald/transport";
import { AllRulers } from "./all-rulers.js";
import { type RulerConfig, rulerKeys } from "./config.js";
import { ruleRoutes } from "./rule-routes.js";
import { Ruler, type RulerDeps } from "./ruler.js";
import { LocalRuleStore } from "./rules/local-rule-store.js";
import { ObjectRuleStore, type RuleStore } from "./rules/rule-store.js";
import { RuleTexts } from "./rules/rule-texts.js";
import { SampleLog } from "./send/sample-log.js";
import { ruleStatusRoutes } from "./status-routes.js";
import { testTexts } from "./testing/rule-texts.js";

let folder: string;
let limits: { rules: number; groups: number; intervalMs: number };
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "ruler-"));
  limits = { rules: 0, groups: 0, intervalMs: 0 };
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const signal = new AbortController().signal;
const nowMs = () => systemClock.nowMs();

const onCorrupt = () => undefined;

const stores: readonly (readonly [string, (texts?: RuleTexts) => RuleStore])[] = [
  [
    "objects",
    (texts = testTexts()) =>
      new ObjectRuleStore({ store: new MemoryStore(), texts, nowMs, onCorrupt }),
  ],
  [
    "files",
    (texts = testTexts()) =>
      new LocalRuleStore({ directory: join(folder, "rules"), texts, onCorrupt }),
  ],
];

async function open(
  store: RuleStore,
  texts = testTexts(),
  more: Partial<RulerConfig> = {},
  deps: Partial<RulerDeps> = {},
) {
  const usual = defaults();
  const config = { ...usual, wal: { ...usual.wal, dir: folder }, ...more };
  const ruler = new Ruler({
    ...{ config, store, clock: systemClock, metrics: new Metrics() },
    log: createLogger({ target: { write: () => undefined } }),
    querier: { instant: async () => ({ kind: "scalar", value: 1 }) },
    limitsOf: () => ({
      ruler_max_rules_per_rule_group: limits.rules,
      ruler_max_rule_groups_per_tenant: limits.groups,
      ruler_min_rule_evaluation_interval: limits.intervalMs,
      ruler_remote_write_disabled: false,
      ruler_remote_write_config: {},
    }),
    ...deps,
  });
  await ruler.start();
  const tenancy = { authEnabled: true, noAuthTenant: "" };
  const log = silentLogger();
  const rulers = new AllRulers({ own: ruler.rules, others: () => [], timeoutMs: 1000, log });
  const routes = [...ruleRoutes(ruler, texts, tenancy), ...ruleStatusRoutes(rulers, tenancy)];
  const call = async (line: string, body = "", tenant = "t"): Promise<[number, string]> => {
    const [method = "", url = ""] = line.split(" ");
    const { handler, variables } = find(routes, method, url.split("?")[0] as string);
    const params = new URLSearchParams(url.split("?")[1]);
    const headers = { "x-scope-orgid": tenant };
    const request = {
      method,
      path: url,
      variables,
      headers,
      params,
      body: Buffer.from(body),
      signal,
    };
    const answer: HttpResponse = await Promise.resolve(handler(request)).catch((error) => ({
      status: error.status as number,
      body: error.message as string,
    }));
    return [answer.status, String(answer.body)];
  };
  return { ruler, call };
}

/** What holds when nothing is set. */
function defaults(): RulerConfig {
  const settings = new Settings(readSchema(field.section("", rulerKeys)));
  return settings.build() as unknown as RulerConfig;
}

function find(routes: readonly Route[], method: string, path: string) {
  for (const route of routes) {
    const pattern = route.path.replace(/:(\w+)/g, "(?<$1>[^/]+)");
    const groups = new RegExp(`^${pattern}$`).exec(path);
    if (groups === null || !route.methods.includes(method)) continue;
    const decoded = Object.entries(groups.groups ?? {}).map(([k, v]) => [k, decodeURIComponent(v)]);
    return {
      handler: route.handler,
      variables: Object.fromEntries(decoded) as Record<string, string>,
    };
  }
  throw new Error(`no route for ${method} ${path}`);
}

const group = (name: string, more = "") =>
  `name: ${name}\nrules: [{alert: A, expr: vector(1) > 0, labels: {a: b}}, {record: r, expr: vector(2)}${more}]`;

describe.each(stores)("rules in %s", (_, make) => {
  it("are set, listed, read and deleted, each tenant its own, whatever their names", async () => {
    const { call, ruler } = await open(make());
    const odd = encodeURIComponent(encodeURIComponent("a/b ü.%"));
    expect((await call("GET /loki/api/v1/rules"))[0]).toBe(404);
    for (const path of ["ns", odd])
      expect(await call(`POST /loki/api/v1/rules/${path}`, group("g"))).toEqual([
        202,
        '{"status":"success","data":null,"errorType":"","error":""}',
      ]);
    expect(
      (await call("POST /api/prom/rules/ns", group("h", ", {alert: B, expr: vector(3)}")))[0],
    ).toBe(202);
    const [status, text] = await call("GET /service/api/v1/rules");
    expect([status, text.match(/^\S.*$/gm)]).toEqual([200, ["a/b ü.%:", "ns:"]]);
    expect((await call("GET /loki/api/v1/rules?labels=a:b"))[1]).not.toContain("record");
    expect((await call("GET /loki/api/v1/rules/ns/h"))[1]).toMatch(/^name: h\n/);
    expect((await call("GET /loki/api/v1/rules/ns/g", "", "u"))[0]).toBe(404);
    expect((await call(`DELETE /loki/api/v1/rules/${odd}`))[0]).toBe(202);
    expect((await call(`DELETE /loki/api/v1/rules/${odd}`))[0]).toBe(404);
    expect((await call("DELETE /loki/api/v1/rules/ns/g"))[0]).toBe(202);
    expect(await call("GET /loki/api/v1/rules/ns/g")).toEqual([404, "group does not exist\n"]);
    await ruler.sync();
    expect(ruler.groupsOf("t").map(({ placed }) => placed.group.name)).toEqual(["h"]);
    await ruler.stop();
  });

  it("are bounded by the limits of the tenant", async () => {
    const { call, ruler } = await open(make());
    limits = { ...limits, rules: 2, groups: 1 };
    expect((await call("POST /loki/api/v1/rules/ns", group("g")))[0]).toBe(202);
    expect((await call("POST /loki/api/v1/rules/ns", group("g")))[0]).toBe(202);
    expect(await call("POST /loki/api/v1/rules/ns", group("h"))).toEqual([
      400,
      "per-user rule groups limit (limit: 1 actual: 2) exceeded\n",
    ]);
    expect(
      await call("POST /loki/api/v1/rules/ns", group("g", ", {alert: B, expr: vector(3)}")),
    ).toEqual([400, "per-user rules per rule group limit (limit: 2 actual: 3) exceeded\n"]);
    await ruler.stop();
  });
});

it("reads and writes rules on threads only", async () => {
  const store = stores[0]![1]();
  const jobs: [string, string][] = [];
  const read = await testTexts().readGroup(Buffer.from(group("g")), { tenant: "t", signal });
  const run = async (name: string, payload: unknown, { share }: JobOptions) => {
    jobs.push([name, share?.tenant ?? ""]);
    return payload instanceof Uint8Array ? read : "written";
  };
  const { call, ruler } = await open(store, new RuleTexts({ run: run as WorkerPool["run"] }));
  expect((await call("POST /loki/api/v1/rules/ns", "no: [group"))[0]).toBe(202);
  expect(await call("GET /loki/api/v1/rules/ns/g")).toEqual([200, "written"]);
  expect(await call("GET /loki/api/v1/rules")).toEqual([200, "written"]);
  expect(jobs).toEqual([
    ["read_rule_group", "t"],
    ["write_rules", "t"],
    ["write_rules", "t"],
  ]);
  await ruler.stop();
});

it("writes the history of alerts to remote write, to its end with the rule or the group", async () => {
  const { remote_write: usual } = defaults();
  const clients = { c: { url: "http://127.0.0.1:1" } };
  const remote_write = { ...usual, enabled: true, clients };
  const { call, ruler } = await open(stores[0]![1](), testTexts(), { remote_write });
  const evaluate = async () => {
    await ruler.sync();
    for (const one of ruler.groupsOf("t")) await one.evaluate(nowMs());
  };
  const rules = (more: string) => `name: g\nrules: [{alert: A, expr: vector(1) > 0}${more}]`;
  await call("POST /loki/api/v1/rules/ns", rules(", {alert: B, expr: vector(1) > 0}"));
  await evaluate();
  await call("POST /loki/api/v1/rules/ns", rules(""));
  await evaluate();
  await call("DELETE /loki/api/v1/rules/ns/g");
  await ruler.sync();
  await ruler.stop();
  const log = new SampleLog(join(folder, "samples", "t"), { maxBytes: 1e9, nowMs });
  await log.open();
  const { samples } = await log.read({ file: 0, offset: 0 });
  await log.close();
  const written = samples.map(({ labels, value }) => {
    const { __name__: name, alertname, alertstate = "" } = labelsToObject(labels);
    return `${name} ${alertname} ${alertstate} ${value !== undefined}`;
  });
  expect(written).toEqual([
    "ALERTS A firing true",
    "ALERTS_FOR_STATE A  true",
    "ALERTS B firing true",
    "ALERTS_FOR_STATE B  true",
    "ALERTS B firing false",
    "ALERTS_FOR_STATE B  false",
    "ALERTS A firing true",
    "ALERTS_FOR_STATE A  true",
    "ALERTS A firing false",
    "ALERTS_FOR_STATE A  false",
  ]);
});

it("evaluates groups no more often than the tenant may", async () => {
  const { call, ruler } = await open(stores[0]![1]());
  const intervals = async () => {
    await ruler.sync();
    return ruler.groupsOf("t").map(({ schedule }) => schedule.intervalMs);
  };
  await call("POST /loki/api/v1/rules/ns", `${group("fast")}\ninterval: 1s`);
  await call("POST /loki/api/v1/rules/ns", `${group("slow")}\ninterval: 5m`);
  await call("POST /loki/api/v1/rules/ns", group("usual"));
  expect(await intervals()).toEqual([1000, 300_000, 60_000]);
  limits = { ...limits, intervalMs: 90_000 };
  expect(await intervals()).toEqual([90_000, 300_000, 90_000]);
  limits = { ...limits, intervalMs: 0 };
  expect(await intervals()).toEqual([1000, 300_000, 60_000]);
  await ruler.stop();
});

it("leaves evaluations of a group that is too slow out, counts them and warns once", async () => {
  const lines: string[] = [];
  const metrics = new Metrics();
  let evaluations = 0;
  const instant = async () => {
    evaluations++;
    return { kind: "scalar", value: 1 } as const;
  };
  // Each evaluation takes five intervals by this clock.
  const clock = { nowMs: () => systemClock.nowMs() + 50 * evaluations };
  const { call, ruler } = await open(stores[0]![1](), testTexts(), undefined, {
    ...{ clock, metrics, querier: { instant } },
    log: createLogger({ target: { write: (line) => lines.push(line) } }),
  });
  await call("POST /loki/api/v1/rules/ns", `${group("g")}\ninterval: 10ms`);
  await ruler.sync();
  await until(() => evaluations >= 7);
  await ruler.stop();
  const { text } = await metrics.read();
  const missed = /group_iterations_missed_total\{[^}]*\} (\d+)/.exec(text)?.[1];
  expect(Number(missed)).toBeGreaterThan(10);
  const warnings = lines.filter((line) => line.includes("cannot keep up with its interval"));
  expect(warnings).toHaveLength(1);
});

it("evaluates sixteen groups at a time, eight of a tenant", async () => {
  const running: string[] = [];
  const peaks = { all: 0, tenant: 0 };
  let letGo = () => {};
  const held = new Promise<void>((resolve) => (letGo = resolve));
  let evaluations = 0;
  const instant = async ({ tenant }: { readonly tenant: string }) => {
    running.push(tenant);
    const ofTenant = running.filter((other) => other === tenant).length;
    peaks.all = Math.max(peaks.all, running.length);
    peaks.tenant = Math.max(peaks.tenant, ofTenant);
    await held;
    running.splice(running.indexOf(tenant), 1);
    evaluations++;
    return { kind: "scalar", value: 1 } as const;
  };
  const { call, ruler } = await open(stores[0]![1](), testTexts(), undefined, {
    querier: { instant },
  });
  const add = async (...tenants: string[]) => {
    for (const tenant of tenants)
      for (let i = 0; i < 12; i++)
        await call("POST /loki/api/v1/rules/ns", `${group(`g${i}`)}\ninterval: 10ms`, tenant);
    await ruler.sync();
  };
  await add("a");
  await until(() => running.length >= 8);
  await add("b", "c");
  await until(() => running.length >= 16);
  letGo();
  await until(() => evaluations >= 200);
  await ruler.stop();
  expect(peaks).toEqual({ all: 16, tenant: 8 });
});

it("lets other work run between the rules of a group", async () => {
  const instant = async () => ({ kind: "scalar", value: 1 }) as const;
  const { call, ruler } = await open(stores[0]![1](), testTexts(), undefined, {
    querier: { instant },
  });
  const many = Array.from({ length: 100 }, (_, i) => `{record: r${i}, expr: vector(1)}`);
  await call("POST /loki/api/v1/rules/ns", `name: g\nrules: [${many}]`);
  await ruler.sync();
  let immediates = 0;
  let isDone = false;
  const count = () => {
    immediates++;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  await ruler.groupsOf("t")[0]?.evaluate(nowMs());
  isDone = true;
  expect(immediates).toBeGreaterThanOrEqual(99);
  await ruler.stop();
});

it("parses only files that changed", async () => {
  const jobs: string[] = [];
  const store = stores[1]![1](testTexts(jobs));
  const namesAfter = async (change: () => void): Promise<string[]> => {
    change();
    jobs.length = 0;
    return (await store.listAll({ signal })).map(({ group: { name } }) => name);
  };
  const write = (file: string, text: string) => writeFileSync(join(folder, "rules/t", file), text);
  const groups = Array.from({ length: 20 }, (_, i) => `g${i}`);
  mkdirSync(join(folder, "rules/t"), { recursive: true });
  const all = await namesAfter(() => {
    for (const name of groups) write(name, `groups: [{name: ${name}, rules: []}]`);
    write("bad", "groups: [");
  });
  expect([all.length, jobs.length]).toEqual([20, 21]);
  // A text of the same length within the same moment.
  const changed = await namesAfter(() => write("g3", "groups: [{name: new, rules: []}]"));
  expect([changed.includes("new"), jobs.length]).toEqual([true, 1]);
  const fewer = await namesAfter(() => rmSync(join(folder, "rules/t/g4")));
  expect([fewer.length, jobs.length]).toEqual([19, 0]);
});

describe("rules as they stand", () => {
  it("are filtered and cut into pages", async () => {
    const { call, ruler } = await open(stores[0]![1]());
    for (const name of ["g1", "g2", "g3"]) await call("POST /loki/api/v1/rules/ns", group(name));
    await call("POST /loki/api/v1/rules/other", group("g1"));
    await ruler.sync();
    for (const one of ruler.groupsOf("t")) await one.evaluate(60_000);
    type Rules = {
      data: {
        groups: { name: string; file: string; rules: Record<string, unknown>[] }[];
        groupNextToken?: string;
      };
    };
    const read = async (query: string) => {
      const [status, text] = await call(`GET /prometheus/api/v1/rules${query}`);
      expect(status).toBe(200);
      return (JSON.parse(text) as Rules).data;
    };
    const names = async (query: string) =>
      (await read(query)).groups.map(({ file, name, rules }) => `${file}/${name}:${rules.length}`);
    expect(await names("")).toEqual(["ns/g1:2", "ns/g2:2", "ns/g3:2", "other/g1:2"]);
    expect(await names("?type=record&file[]=other")).toEqual(["other/g1:1"]);
    expect(await names("?rule_group=g1&rule_group[]=g2&file=ns")).toEqual(["ns/g1:2", "ns/g2:2"]);
    expect(await names("?rule_name=none")).toEqual([]);
    expect(await names('?match[]={a="b"}')).toEqual([
      "ns/g1:1",
      "ns/g2:1",
      "ns/g3:1",
      "other/g1:1",
    ]);
    const { groupNextToken } = await read("?group_limit=3");
    expect(await names(`?group_limit=3&group_next_token=${groupNextToken}`)).toEqual([
      "other/g1:2",
    ]);
    const [{ rules }] = (await read("")).groups as [Rules["data"]["groups"][number]];
    expect(rules[0]).toMatchObject({
      state: "firing",
      query: "(vector(1.000000) > 0)",
      health: "ok",
      type: "alerting",
    });
    expect(rules[0]?.alerts).toMatchObject([
      { labels: { a: "b", alertname: "A" }, value: "1e+00" },
    ]);
    expect(rules[1]).not.toHaveProperty("state");
    expect((await read("?exclude_alerts=true")).groups[0]?.rules[0]).not.toHaveProperty("alerts");
    expect(await call("GET /compat/api/v1/rules?type=x")).toEqual([
      400,
      expect.stringContaining('not supported value \\"x\\"'),
    ]);
    expect((await call("GET /compat/api/v1/alerts"))[1]).toContain('"alertname":"A"');
    await ruler.stop();
  });
});
