import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { labelsFromObject, labelsToObject } from "@skald/model";
import { AlertingRule } from "@skald/ruler/evaluate";
import type { RuleGroup } from "@skald/ruler/texts";
import { parse } from "yaml";
import { Client } from "../client/client.js";
import { connectionFlags, connectionOf } from "../client/settings.js";
import { lineServer, noConnection, withServer } from "../move/local.js";
import type { MetricResult } from "../output/metric-output.js";
import { type AnyCommand, command, exits, Failure, type Io } from "../shell/command.js";
import { parseDuration } from "../shell/times.js";
import { readRules } from "./rules.js";

/** The time 0 of a test: a day of its own, so that nothing depends on the day on which it runs. */
const startMs = Date.UTC(2024, 0, 1);
/** No rule is evaluated more often in one test. */
const maxSlots = 20_000;
const maxLines = 1_000_000;

export const rulesTest: AnyCommand = command({
  args: "<files...>",
  says: `Runs rules over lines, without a server; the exit code is 1 if something else comes out than a file says. Its form is that of
promtool, with lines in place of samples:

  rule_files: [rules.yaml]
  evaluation_interval: 1m
  tests:
    - name: many errors
      input_streams:
        - labels: '{app="api"}'
          lines: [{line: 'level=error msg="x"', at: 0s, every: 10s, times: 60}]
      alert_rule_test:
        - {alertname: ManyErrors, eval_time: 5m, exp_alerts: [{exp_labels: {app: api}}]}
      logql_expr_test:
        - {expr: 'sum(count_over_time({app="api"}[1m]))', eval_time: 2m, exp_samples: [{labels: '{}', value: 6}]}`,
  flags: {},
  run: async ({ args }, io) => {
    const files = args.map(readTests);
    let failures = 0;
    await withServer([...lineServer, "-auth.enabled=true"], io, async ({ url }) => {
      let number = 0;
      for (const [i, file] of files.entries()) {
        const problems: string[] = [];
        for (const test of file.tests) {
          const client = clientOf(url, `test-${number++}`, io);
          for (const problem of await runTest(client, file, test))
            problems.push(`${test.name}: ${problem}`);
        }
        failures += problems.length;
        for (const problem of problems) io.stderr.write(`${args[i]}: ${problem}\n`);
        if (problems.length === 0)
          io.stdout.write(`${args[i]}: ${file.tests.length} tests, all good\n`);
      }
    });
    return failures > 0 ? exits.found : exits.done;
  },
});

interface TestFile {
  readonly intervalMs: number;
  readonly groups: readonly RuleGroup[];
  readonly tests: readonly RuleTest[];
}

interface RuleTest {
  readonly name: string;
  readonly streams: readonly Record<string, unknown>[];
  readonly alerts: readonly Record<string, unknown>[];
  readonly expressions: readonly Record<string, unknown>[];
}

/** Reads a file of tests and the rules that it names. */
function readTests(path: string): TestFile {
  try {
    const text = readFileSync(path, "utf8");
    const root = withKeys(parse(text), "the file", "rule_files", "evaluation_interval", "tests");
    const paths = listOf(root.rule_files).map((one) => resolve(dirname(path), String(one)));
    return {
      intervalMs: msOf(root.evaluation_interval ?? "1m", "evaluation_interval"),
      groups: paths.flatMap((one) => readRules(one).groups),
      tests: listOf(root.tests).map((one, i) => testOf(one, `tests[${i}]`)),
    };
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw new Failure("usage", `${path}: ${(error as Error).message}`, { cause: error });
  }
}

function testOf(value: unknown, where: string): RuleTest {
  const keys = ["name", "input_streams", "alert_rule_test", "logql_expr_test"];
  const test = withKeys(value, where, ...keys);
  const objects = (key: string, ...known: string[]) =>
    listOf(test[key]).map((one, i) => withKeys(one, `${where}.${key}[${i}]`, ...known));
  return {
    name: String(test.name ?? where),
    streams: objects("input_streams", "labels", "lines"),
    alerts: objects("alert_rule_test", "alertname", "eval_time", "exp_alerts"),
    expressions: objects("logql_expr_test", "expr", "eval_time", "exp_samples"),
  };
}

/** Stores the lines of a test and compares; returns what differs. */
async function runTest(client: Client, file: TestFile, test: RuleTest): Promise<string[]> {
  const streams = test.streams.map(({ labels, lines }) => ({
    stream: labelsOf(labels),
    values: linesOf(lines),
  }));
  if (streams.length > 0)
    await client.call("/loki/api/v1/push", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ streams }),
    });
  const problems: string[] = [];
  for (const { expr, eval_time, exp_samples } of test.expressions) {
    const found = await ask(client, String(expr), msOf(eval_time, "eval_time"));
    const wanted = listOf(exp_samples).map((one) => {
      const { labels, value } = withKeys(one, "exp_samples", "labels", "value");
      return [labelsOf(labels), Number(value)];
    });
    const got = found.map(({ labels, value }) => [labels, value]);
    problems.push(...difference(`${expr} at ${eval_time}`, wanted, got));
  }
  for (const { alertname, eval_time, exp_alerts } of test.alerts) {
    const found = await alertsAt(client, file, String(alertname), msOf(eval_time, "eval_time"));
    const wanted = listOf(exp_alerts).map((one) => {
      const alert = withKeys(one, "exp_alerts", "exp_labels", "exp_annotations");
      return [textMap(alert.exp_labels), textMap(alert.exp_annotations)];
    });
    if (found === undefined) problems.push(`there is no alert ${alertname}`);
    else problems.push(...difference(`${alertname} at ${eval_time}`, wanted, found));
  }
  return problems;
}

/** The alerts of a name that fire at a time, as labels and annotations; undefined if no rule has the name. */
async function alertsAt(
  client: Client,
  { groups, intervalMs: usualMs }: TestFile,
  name: string,
  atMs: number,
): Promise<unknown[] | undefined> {
  const found: unknown[] = [];
  let isKnown = false;
  for (const group of groups)
    for (const rule of group.rules.filter(({ alert }) => alert === name)) {
      isKnown = true;
      const labels = { ...group.labels, ...rule.labels };
      const { limit } = group;
      const work = new AlertingRule(rule, { labels, externalLabels: {}, externalUrl: "", limit });
      const stepMs = group.intervalMs || usualMs;
      if (atMs / stepMs > maxSlots)
        throw new Failure("usage", `eval_time of ${name} is more than ${maxSlots} evaluations`);
      for (let slotMs = 0; slotMs <= atMs; slotMs += stepMs) {
        const samples = await ask(client, rule.expr, slotMs - (group.queryOffsetMs ?? 0));
        const read = samples.map((one) => ({ ...one, labels: labelsFromObject(one.labels) }));
        work.update(read, startMs + slotMs);
      }
      for (const alert of work.alerts().filter(({ state }) => state === "firing")) {
        const { alertname: _, ...shown } = labelsToObject(alert.labels);
        found.push([shown, { ...labelsToObject(alert.annotations) }]);
      }
    }
  return isKnown ? found : undefined;
}

interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** The value of an expression at a time of the test. */
async function ask(client: Client, query: string, atMs: number): Promise<Sample[]> {
  const params = { query, time: `${BigInt(startMs + atMs) * 1_000_000n}` };
  const { data } = await client.json<{ readonly data: MetricResult }>("/loki/api/v1/query", params);
  if (data.resultType === "scalar") return [{ labels: {}, value: Number(data.result[1]) }];
  if (data.resultType !== "vector") throw new Failure("usage", `${query} has no values but lines`);
  return data.result.map(({ metric, value }) => ({ labels: metric, value: Number(value[1]) }));
}

/** What differs, in any order. */
function difference(what: string, wanted: readonly unknown[], got: readonly unknown[]): string[] {
  const sorted = (list: readonly unknown[]) => list.map(canonical).sort();
  const [want, found] = [sorted(wanted), sorted(got)];
  if (isDeepStrictEqual(want, found)) return [];
  const shown = (list: readonly string[]) => (list.length === 0 ? "nothing" : list.join(", "));
  return [`${what}: expected ${shown(want)}, got ${shown(found)}`];
}

/** JSON with the names of objects in order. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, one: unknown) =>
    typeof one === "object" && one !== null && !Array.isArray(one)
      ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1)))
      : one,
  );
}

/** The rows of `lines`: texts at the start, or objects with their times. */
function linesOf(lines: unknown): [string, string][] {
  const rows: [string, string][] = [];
  for (const one of listOf(lines)) {
    const given = typeof one === "string" ? { line: one } : one;
    const { line, at, every, times } = withKeys(given, "lines", "line", "at", "every", "times");
    const firstMs = msOf(at ?? "0s", "at");
    const everyMs = msOf(every ?? "0s", "every");
    const count = Number(times ?? 1);
    if (!(count >= 1) || rows.length + count > maxLines)
      throw new Failure("usage", `lines: times is to be from 1 to ${maxLines}, not ${times}`);
    for (let i = 0; i < count; i++) {
      // Lines of one time are different ones.
      const ns = BigInt(startMs + firstMs + i * everyMs) * 1_000_000n + BigInt(everyMs > 0 ? 0 : i);
      rows.push([`${ns}`, String(line)]);
    }
  }
  return rows;
}

function labelsOf(value: unknown): Record<string, string> {
  if (typeof value !== "string") return textMap(value);
  const pairs = [...value.matchAll(/([a-zA-Z_]\w*)\s*=\s*("(?:[^"\\]|\\.)*")/g)];
  return Object.fromEntries(pairs.map(([, name, text]) => [name, JSON.parse(text as string)]));
}

function textMap(value: unknown): Record<string, string> {
  return Object.fromEntries(Object.entries(value ?? {}).map(([name, one]) => [name, String(one)]));
}

function listOf(value: unknown): readonly unknown[] {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value)) return value;
  throw new Error(`a list is expected, not ${JSON.stringify(value).slice(0, 80)}`);
}

/** The value as an object that has no other keys. */
function withKeys(value: unknown, where: string, ...keys: string[]): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new Error(`${where} is to have ${keys.join(", ")}`);
  const unknown = Object.keys(value).find((key) => !keys.includes(key));
  if (unknown !== undefined)
    throw new Error(`${where}: unknown key ${unknown}; known are ${keys.join(", ")}`);
  return value as Record<string, unknown>;
}

function msOf(value: unknown, what: string): number {
  return Number(parseDuration(what, String(value)) / 1_000_000n);
}

function clientOf(url: string, tenant: string, io: Io): Client {
  const defaults = Object.fromEntries(
    Object.entries(connectionFlags).map(([name, { value }]) => [name, value]),
  );
  const flags = { ...defaults, ...noConnection, addr: url, "org-id": tenant };
  return new Client(connectionOf(flags as never, {}), io.signal);
}
