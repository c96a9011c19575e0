import { describe, expect, it } from "@jest/globals";
import { plainGroup, readGroup, readGroups, writeYaml } from "./group-yaml.js";
import { checkGroups } from "./rule-group.js";

describe("groups in YAML", () => {
  it("reads what it writes", () => {
    const text = `name: g
interval: 1m
query_offset: 30s
limit: 10
labels:
    source: logs
rules:
    - alert: A
      expr: vector(1) > 0
      for: 5m
      keep_firing_for: 1h30m
      labels:
        severity: page
      annotations:
        summary: "{{ $value }}"
    - record: a:b
      expr: |
        sum(
          rate({app="x"}[1m])
        )
`;
    const group = readGroup(text);
    expect(group).toMatchObject({ intervalMs: 60_000, queryOffsetMs: 30_000, limit: 10 });
    expect(group.rules[0]).toMatchObject({ forMs: 300_000, keepFiringForMs: 5_400_000 });
    expect(checkGroups([group])).toEqual([]);
    expect(readGroup(writeYaml(plainGroup(group)))).toEqual(group);
    expect(writeYaml(plainGroup(group))).toBe(text);
    const file = writeYaml(new Map([["ns", [plainGroup(group)]]]));
    const [first, ...rest] = text.replace(/^ {8}(?=sum|\))/gm, "  $&").split("\n");
    expect(file.split("\n").slice(0, 7)).toEqual([
      ...["ns:", `    - ${first}`, ...rest.slice(0, 3).map((line) => `      ${line}`)],
      ...["      labels:", "        source: logs"],
    ]);
    expect(file).toContain("\n      rules:\n        - alert: A\n          expr: vector(1) > 0\n");
    expect(file).toContain("\n          labels:\n            severity: page\n");
    expect(readGroups(file.replace("ns:", "groups:"))).toEqual([group]);
  });

  it.each([
    "a\n b\n",
    " a\nb",
    "\n\n a\n\n",
    "a\n\n",
    " ",
    "",
    "\t\n",
    "- a",
    "# b\n",
    "a: b",
    "é\r\n",
    "---\na",
  ])("keeps the text %j at each depth", (odd) => {
    const rules = [{ alert: "A", expr: odd, labels: { [odd]: odd, b: odd } }];
    const plain = { name: odd, labels: { c: odd }, rules };
    const [read] = readGroups(writeYaml({ groups: [plain] }));
    expect(read).toMatchObject(plain);
    expect(readGroup(writeYaml(plain))).toMatchObject(plain);
  });

  it("keeps texts that look like numbers, truth or nothing", () => {
    const text = 'name: 12\nrules: [{alert: A, expr: "1", labels: {a: yes, b: 0x1, c: "null"}}]';
    const group = readGroup(text);
    expect(group.name).toBe("12");
    expect(group.rules[0]?.labels).toEqual({ a: "yes", b: "0x1", c: "null" });
    expect(readGroup(writeYaml(plainGroup(group)))).toEqual(group);
  });

  it.each([
    ["not: [valid", /line 1, column \d+/],
    ["name: g\ninterval: abc", /line 2, column 11: expected a duration/],
    ["name: g\nrules: 5", /line 2, column 8: expected a list/],
    ["name: [a]", /line 1, column 7: expected a text/],
    ["name: a\nname: b", /line 2, column 1: .*unique/],
    ["- a", /expected a map/],
    ["name: g\nrules: [{alert: A, labels: [x]}]", /expected a map/],
  ])("tells where %j is wrong", (text, problem) => {
    expect(() => readGroup(text)).toThrow(/^unable to decoded rule group: /);
    expect(() => readGroup(text)).toThrow(problem);
  });

  it("takes 10,000 labels and annotations in a group", () => {
    const half = Array.from({ length: 5000 }, (_, i) => `k${i}: v`).join();
    const group = (labels: string) =>
      `name: g\nlabels: {${labels}}\nrules: [{alert: A, annotations: {${half}}}]`;
    expect(Object.keys(readGroup(group(half)).labels)).toHaveLength(5000);
    expect(() => readGroup(group(`${half}, a: v`))).toThrow(
      /line 3, column \d+: a group has at most 10000 labels and annotations$/,
    );
    const two = `groups: [{name: a, labels: {${half}, a: v}}, {name: b, labels: {${half}}}]`;
    expect(readGroups(two)).toHaveLength(2);
  });

  it.each([
    ["lists", "[".repeat(10_000), /line 1, column 100: more than 100 levels deep/],
    ["lists of lines", "- ".repeat(10_000), /line 1, column \d+: more than 100 levels deep/],
    ["maps", "{a: ".repeat(10_000), /line 1, column \d+: more than 100 levels deep/],
    ["tokens", `[${"a,".repeat(500_000)}]`, /line 1, column \d+: more than 500000 tokens/],
    [
      "aliases",
      `a: &a [x]\nb: &b [*a, *a]\nname: *b\nrules: []`,
      /line 3, column 7: expected a text/,
    ],
  ])("refuses too many %s", (_, text, problem) => {
    expect(() => readGroup(text)).toThrow(problem);
  });

  it("reads a megabyte of keys, and says which of them is there twice", () => {
    const keys = Array.from({ length: 50_000 }, (_, i) => `key${String(i).padStart(11, "0")}: v\n`);
    const text = `name: g\nunknown:\n  ${keys.join("  ")}`;
    expect(text.length).toBeGreaterThan(900_000);
    expect(readGroup(text).name).toBe("g");
    expect(() => readGroup(`${text}  key00000000007: w\n`)).toThrow(
      /: line 50003, column 3: Map keys must be unique$/,
    );
  });

  it("reads a file of groups, and of nothing", () => {
    expect(readGroups("")).toEqual([]);
    expect(readGroups("groups: [{name: a}, {name: b}]").map(({ name }) => name)).toEqual([
      "a",
      "b",
    ]);
  });
});

const alert = "rules: [{alert: A, expr: vector(1)";

it.each([
  ["", "group 0: Groupname must not be empty"],
  ["name: g\nrules: [{expr: vector(1)}]", "one of 'record' or 'alert' must be set"],
  ["name: g\nrules: [{alert: a, record: b}]", "only one of 'record' and 'alert' must be set"],
  ["name: g\nrules: [{alert: a}]", "field 'expr' must be set in rule"],
  [
    "name: g\nrules: [{record: b, for: 5m, expr: vector(1)}]",
    "invalid field 'for' in recording rule",
  ],
  [
    "name: g\nrules: [{record: bad name, expr: vector(1)}]",
    "invalid recording rule name: bad name",
  ],
  [
    "name: g\nrules: [{record: b, annotations: {a: b}, expr: vector(1)}]",
    "invalid field 'annotations' in recording rule",
  ],
  [`name: g\n${alert}, labels: {a-b: c}}]`, "invalid label name: a-b"],
  [`name: g\n${alert}, labels: {__name__: c}}]`, "invalid label name: __name__"],
  [`name: g\n${alert}, annotations: {a b: c}}]`, "invalid annotation name: a b"],
  [
    `name: g\n${alert}, annotations: {a: "{{ nope }}"}}]`,
    /^annotation "a": template: __alert_A:1: function "nope" not defined/,
  ],
  [`name: g\n${alert}, labels: {a: "{{ if }}"}}]`, /^label "a": template: /],
  [
    "name: g\nrules: [{alert: A, expr: 'sum('}]",
    /^could not parse expression for alert 'A' in group 'g': parse error at line 1, col 5/,
  ],
  ['name: g\nrules: [{alert: A, expr: "{a=`b`}"}]', /metric query/],
])("says what is wrong with %j", (text, problem) => {
  const [first] = checkGroups([readGroup(text)]);
  if (typeof problem === "string") expect(first).toBe(problem);
  else expect(first).toMatch(problem);
});
