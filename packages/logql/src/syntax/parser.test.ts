import { describe, expect, it } from "@jest/globals";
import type { Expr, LabelFilter, LogExpr, MetricExpr, RangeAggregation, Stage } from "./ast.js";
import { parseQuery, parseSelector } from "./parser.js";

const minute = 60_000_000_000n;

function stagesOf(text: string): readonly Stage[] {
  return (parseQuery(`{a="b"} ${text}`) as LogExpr).stages;
}

function filterOf(text: string): LabelFilter {
  const [stage] = stagesOf(`| ${text}`);
  if (stage?.kind !== "label_filter") throw new Error(`no label filter: ${text}`);
  return stage.filter;
}

describe("selectors", () => {
  it.each<[string, LogExpr["matchers"]]>([
    ['{a="b"}', [{ name: "a", op: "=", value: "b" }]],
    [
      '{ a = `b` , c!~"d.*" }',
      [
        { name: "a", op: "=", value: "b" },
        { name: "c", op: "!~", value: "d.*" },
      ],
    ],
    ['({rate!=""})', [{ name: "rate", op: "!=", value: "" }]],
    ['((({größe=~".+"})))', [{ name: "größe", op: "=~", value: ".+" }]],
  ])("%s", (text, matchers) => {
    expect(parseQuery(text)).toEqual({ kind: "log", matchers, stages: [] });
  });
});

describe("stages", () => {
  it.each<[string, readonly Stage[]]>([
    ['|= "x"', [{ kind: "line_filter", op: "|=", alternatives: [{ kind: "text", value: "x" }] }]],
    [
      '|~ "x" or ip("::1") or `y`',
      [
        {
          kind: "line_filter",
          op: "|~",
          alternatives: [
            { kind: "text", value: "x" },
            { kind: "ip", value: "::1" },
            { kind: "text", value: "y" },
          ],
        },
      ],
    ],
    [
      '!> "x" or "y"',
      [
        { kind: "line_filter", op: "!>", alternatives: [{ kind: "text", value: "x" }] },
        { kind: "line_filter", op: "!>", alternatives: [{ kind: "text", value: "y" }] },
      ],
    ],
    ["| JSON", [{ kind: "json", extractions: [] }]],
    [
      '| json a, b="c.d"',
      [
        {
          kind: "json",
          extractions: [
            { label: "a", path: "a" },
            { label: "b", path: "c.d" },
          ],
        },
      ],
    ],
    [
      '| logfmt --keep-empty --strict x="y"',
      [{ kind: "logfmt", strict: true, keepEmpty: true, extractions: [{ label: "x", path: "y" }] }],
    ],
    ['| regexp "(?P<x>.*)"', [{ kind: "regexp", pattern: "(?P<x>.*)" }]],
    ['| pattern "<x> <_>"', [{ kind: "pattern", pattern: "<x> <_>" }]],
    ["| unpack | decolorize", [{ kind: "unpack" }, { kind: "decolorize" }]],
    ['| line_format "{{.x}}"', [{ kind: "line_format", template: "{{.x}}" }]],
    [
      '| label_format a=b, c="{{.d}}"',
      [
        {
          kind: "label_format",
          formats: [
            { kind: "rename", label: "a", source: "b" },
            { kind: "template", label: "c", template: "{{.d}}" },
          ],
        },
      ],
    ],
    [
      '| drop a, b!~"c" | keep d',
      [
        {
          kind: "drop",
          targets: [
            { kind: "name", name: "a" },
            { kind: "matcher", matcher: { name: "b", op: "!~", value: "c" } },
          ],
        },
        { kind: "keep", targets: [{ kind: "name", name: "d" }] },
      ],
    ],
  ])("%s", (text, stages) => {
    expect(stagesOf(text)).toEqual(stages);
  });
});

describe("label filters", () => {
  it.each<[string, LabelFilter]>([
    ['a="b"', { kind: "string", matcher: { name: "a", op: "=", value: "b" } }],
    ['a !~ "b"', { kind: "string", matcher: { name: "a", op: "!~", value: "b" } }],
    ["a=5", { kind: "number", name: "a", op: "==", value: 5 }],
    ["a != -.5", { kind: "number", name: "a", op: "!=", value: -0.5 }],
    ["a >= +1e3", { kind: "number", name: "a", op: ">=", value: 1000 }],
    ["a<1d", { kind: "duration", name: "a", op: "<", value: 1440n * minute }],
    ["a == -5m", { kind: "duration", name: "a", op: "==", value: -5n * minute }],
    ["a > 1KB", { kind: "bytes", name: "a", op: ">", value: 1000 }],
    ['ip = ip("::1")', { kind: "ip", name: "ip", op: "==", value: "::1" }],
    ['a != ip("::1")', { kind: "ip", name: "a", op: "!=", value: "::1" }],
  ])("%s", (text, filter) => {
    expect(filterOf(text)).toEqual(filter);
  });

  it.each([
    ["a=1 and b=2 or c=3", "((a b) or c)"],
    ["a=1 or b=2 and c=3", "(a or (b c))"],
    ["a=1 or b=2 or c=3", "((a or b) or c)"],
    ["a=1 and b=2 and c=3", "((a b) c)"],
    ["a=1 or b=2, c=3", "(a or (b c))"],
    ["a=1, b=2 or c=3", "(a (b or c))"],
    ["a=1 and b=2, c=3", "(a (b c))"],
    ["a=1 b=2 c=3", "(a (b c))"],
    ["a=1 b=2 or c=3 and d=4", "(a (b or (c d)))"],
    ["(a=1 or b=2) c=3", "((a or b) c)"],
    ["a=1 or (b=2 or c=3)", "(a or (b or c))"],
  ])("groups %s as %s", (text, want) => {
    const show = (filter: LabelFilter): string => {
      if (filter.kind === "or") return `(${show(filter.left)} or ${show(filter.right)})`;
      if (filter.kind === "and") return `(${show(filter.left)} ${show(filter.right)})`;
      return filter.kind === "string" ? filter.matcher.name : filter.name;
    };
    expect(show(filterOf(text))).toBe(want);
  });
});

describe("range aggregations", () => {
  const log: LogExpr = {
    kind: "log",
    matchers: [{ name: "a", op: "=", value: "b" }],
    stages: [{ kind: "json", extractions: [] }],
  };
  const unwrap = { label: "v", conversion: "none", filters: [] } as const;
  const sum: RangeAggregation = {
    kind: "range_aggregation",
    op: "sum_over_time",
    log,
    unwrap,
    rangeNs: 5n * minute,
    offsetNs: 0n,
  };

  it.each<[string, RangeAggregation]>([
    ['sum_over_time({a="b"} | json | unwrap v [5m])', sum],
    ['sum_over_time({a="b"}[5m] | json | unwrap v)', sum],
    ['sum_over_time(({a="b"} | json | unwrap v)[5m])', sum],
    ['sum_over_time(({a="b"} | json)[5m] | unwrap v)', sum],
    ['sum_over_time((({a="b"} | json | unwrap v [5m])))', sum],
    ['SUM_OVER_TIME({a="b"}[5m] offset 1m | json | unwrap v)', { ...sum, offsetNs: minute }],
    ['sum_over_time({a="b"} | json | unwrap v [5m] offset -1m)', { ...sum, offsetNs: -minute }],
    [
      'sum_over_time({a="b"} | json | unwrap duration_seconds(v) | x="" | y>1, z=2 [5m])',
      {
        ...sum,
        unwrap: {
          label: "v",
          conversion: "duration_seconds",
          filters: [filterOf('x=""'), filterOf("y>1, z=2")],
        },
      },
    ],
    [
      'quantile_over_time(.99, {a="b"} | json | unwrap v [5m]) by (x, y)',
      {
        ...sum,
        op: "quantile_over_time",
        parameter: 0.99,
        grouping: { without: false, labels: ["x", "y"] },
      },
    ],
    [
      'max_over_time({a="b"} | json | unwrap v [5m]) by ()',
      { ...sum, op: "max_over_time", grouping: { without: false, labels: [] } },
    ],
  ])("%s", (text, want) => {
    expect(parseQuery(text)).toStrictEqual(want);
  });
});

describe("vector aggregations", () => {
  const inner: MetricExpr = { kind: "vector", value: 1 };
  it.each<[string, MetricExpr]>([
    ["sum(vector(1))", { kind: "vector_aggregation", op: "sum", inner }],
    ["sum by () (vector(1))", { kind: "vector_aggregation", op: "sum", inner }],
    [
      "max without () (vector(1))",
      { kind: "vector_aggregation", op: "max", inner, grouping: { without: true, labels: [] } },
    ],
    [
      "Sum By (count, rate) (vector(1))",
      {
        kind: "vector_aggregation",
        op: "sum",
        inner,
        grouping: { without: false, labels: ["count", "rate"] },
      },
    ],
    [
      "topk(3, vector(1)) by (a)",
      {
        kind: "vector_aggregation",
        op: "topk",
        parameter: 3,
        inner,
        grouping: { without: false, labels: ["a"] },
      },
    ],
    [
      'label_replace(vector(1), "a", "$1", "b", "(.*)")',
      {
        kind: "label_replace",
        inner,
        destination: "a",
        replacement: "$1",
        source: "b",
        regex: "(.*)",
      },
    ],
  ])("%s", (text, want) => {
    expect(parseQuery(text)).toStrictEqual(want);
  });
});

describe("operators", () => {
  it.each([
    ["v(1) + v(2) * v(3)", "(1 + (2 * 3))"],
    ["v(1) - v(2) - v(3)", "((1 - 2) - 3)"],
    ["v(1) ^ v(2) ^ v(3)", "(1 ^ (2 ^ 3))"],
    ["v(1) * v(2) ^ v(3) % v(4)", "((1 * (2 ^ 3)) % 4)"],
    ["v(1) or v(2) and v(3) unless v(4)", "(1 or ((2 and 3) unless 4))"],
    ["v(1) > v(2) == v(3) + v(4)", "((1 > 2) == (3 + 4))"],
    ["v(1) AND (v(2) Or v(3))", "(1 and (2 or 3))"],
  ])("groups %s as %s", (text, want) => {
    const show = (expr: Expr): string => {
      if (expr.kind === "binary") return `(${show(expr.left)} ${expr.op} ${show(expr.right)})`;
      return expr.kind === "vector" ? String(expr.value) : expr.kind;
    };
    expect(show(parseQuery(text.replaceAll("v(", "vector(")))).toBe(want);
  });

  it.each<[string, number]>([
    ["1 + 2 * 3", 7],
    ["(1 + 2) * 3", 9],
    ["2 ^ 3 ^ 2", 512],
    ["-2 ^ 2", 4],
    ["1 - -1", 2],
    ["-7 % 3", -1],
    ["1 > 2", 0],
    ["2 > bool 1 + 1", 0],
    ["5 > bool 3 == bool 1", 1],
    ["1 / 0", Number.NaN],
    ["0 / 0", Number.NaN],
    ["5 % 0", Number.NaN],
    ["1 ^ (0 / 0)", 1],
    ["+5", 5],
    ["1 != 1", 0],
    ["1 <= 1", 1],
  ])("folds %s to %d", (text, value) => {
    expect(parseQuery(text)).toEqual({ kind: "literal", value });
  });

  it.each<[string, object]>([
    ["", { bool: false }],
    ["bool", { bool: true }],
    ["on ()", { bool: false, matching: { on: true, labels: [] } }],
    ["bool ignoring (a, b)", { bool: true, matching: { on: false, labels: ["a", "b"] } }],
    [
      "on (a) group_left",
      { bool: false, matching: { on: true, labels: ["a"], group: { side: "left", include: [] } } },
    ],
    [
      "on (a) group_right (x, y)",
      {
        bool: false,
        matching: { on: true, labels: ["a"], group: { side: "right", include: ["x", "y"] } },
      },
    ],
  ])("reads the modifiers %s", (modifiers, want) => {
    const side = { kind: "vector", value: 1 };
    expect(parseQuery(`vector(1) > ${modifiers} vector(1)`)).toStrictEqual({
      kind: "binary",
      op: ">",
      left: side,
      right: side,
      ...want,
    });
  });
});

describe("parseSelector", () => {
  it("gives the matchers", () => {
    expect(parseSelector('{a="b", c!="d"}')).toEqual([
      { name: "a", op: "=", value: "b" },
      { name: "c", op: "!=", value: "d" },
    ]);
  });

  it.each([['{a="b"} |= "x"'], ["vector(1)"], ['{a="b"} | json']])("refuses %s", (text) => {
    expect(() => parseSelector(text)).toThrow("only label matchers are supported");
  });

  it("lets selectors pass that match anything, as far as asked", () => {
    expect(() => parseSelector("{}")).toThrow("at least one regexp or equality matcher");
    expect(parseSelector("{}", { emptyCompatible: "bare" })).toEqual([]);
    expect(() => parseSelector('{a=""}', { emptyCompatible: "bare" })).toThrow("at least one");
    expect(parseSelector('{a=""}', { emptyCompatible: "all" })).toHaveLength(1);
  });
});
