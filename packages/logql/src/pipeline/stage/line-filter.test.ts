import { describe, expect, it } from "@jest/globals";
import type { NeedleFormula } from "@skald/model";
import { parseQuery } from "../../syntax.js";
import { runStages } from "../../testing/run-stages.js";
import { compilePipeline } from "../compile.js";
import { compileLineFilter } from "./line-filter.js";

const regex = (value: string) => ({
  kind: "line_filter" as const,
  op: "|~" as const,
  alternatives: [{ kind: "text" as const, value }],
});
const passes = (stages: string, line: string) => runStages(stages, line) !== undefined;

describe("line filters", () => {
  it.each([
    ['|= "b"', "abc", true],
    ['|= "B"', "abc", false],
    ['|= ""', "", true],
    ['!= ""', "abc", false],
    ['!= "x"', "abc", true],
    ['|= "x" or "b"', "abc", true],
    ['!= "x" or "b"', "abc", false],
    ['|= "a" |= "c" != "x"', "abc", true],
    ['|~ "^a.c$"', "abc", true],
    ['|~ "B"', "abc", false],
    ['|~ "(?i)B"', "abc", true],
    ['|~ "(?i)task"', "TA\u017f\u212a", true],
    ['|~ "a.b"', "a\nb", false],
    ['|~ ".*"', "", true],
    ['!~ ""', "abc", false],
    ['!~ "^x" or "^a"', "abc", false],
    ['|> "a<_>"', "abc", true],
    ['|> "a<_>"', "a", false],
    ['|> "<_>b<_>"', "abc", true],
    ['|> "<_>c"', "abcx", false],
    ['|> "<_>"', "", false],
    ['|> "b<_>"', "abc", true],
    ['|> "level=<_> <_>"', "ts=1 level=info msg=x", true],
    ['|> "b"', "ab", true],
    ['|> "b"', "bb", false],
    ['|> "<_>level=<_> <_>"', "level=info level=error", false],
    ['|> "<_>b"', "ba", false],
    ['|> "a<_>b<_>"', "abxbx", false],
    ['|> "<_>é"', "\u{1f600}é", true],
    ['|> ""', "", true],
    ['|> ""', "a", false],
    ['!> "a<_>" or "b<_>"', "cx", true],
    ['|= ip("10.0.0.0/8")', "from 10.1.2.3:80", true],
    ['!= ip("10.0.0.0/8")', "from 10.1.2.3:80", false],
    ['|= "x" or ip("10.0.0.0/8")', "10.0.0.300", false],
  ])("%s on %j", (stages, line, want) => {
    expect(passes(stages, line)).toBe(want);
    // behind a stage that changes the line
    expect(passes(`| line_format "{{__line__}}" ${stages}`, line)).toBe(want);
  });

  it("search any number of texts in one pass", () => {
    const value = (i: number) => `order-${(i * 7919) % 100_003}`;
    const alternatives = Array.from({ length: 10_000 }, (_, i) => ({
      kind: "text" as const,
      value: value(i),
    }));
    for (const filter of [
      compileLineFilter({ kind: "line_filter", op: "|=", alternatives }),
      compileLineFilter({ kind: "line_filter", op: "|~", alternatives }),
      compileLineFilter(regex(alternatives.map(({ value }) => value).join("|"))),
      compileLineFilter(regex(`(?i)${alternatives.map(({ value }) => value).join("|")}`)),
    ]) {
      expect(filter.needles?.values.length).toBe(10_000);
      expect(filter.needles?.complete).toBe(true);
      // less than a state for each byte of the texts: shared beginnings are searched once
      expect(filter.needles?.texts?.stateCount).toBeLessThan(30_000);
    }
  });

  it("see the line as it is at their place", () => {
    expect(runStages('| line_format "new" |= "new" != "old"', "old")?.line).toBe("new");
    expect(runStages('|= "old" | line_format "new"', "old")?.line).toBe("new");
  });

  it.each([
    ['|~ "["', "parse error : stage '|~ \"[\"' : error parsing regexp: missing closing ]: `[`"],
    [
      '|~ "a" or "["',
      'parse error : stage \'|~ "a" or "["\' : error parsing regexp: missing closing ]: `[`',
    ],
    [
      '|= "a" or ip("x") or "b"',
      'parse error : stage \'|= "a" or ip("x") or "b"\' : ip: invalid pattern: "x"',
    ],
    ['|= ip("x")', 'parse error : stage \'|= ip("x")\' : ip: invalid pattern: "x"'],
    ['|~ ip("1.1.1.1")', "parse error : stage '|~ ip(\"1.1.1.1\")' : ip: invalid operation"],
  ])("refuses %s", (stages, message) => {
    expect(() => runStages(stages, "")).toThrow(message);
  });

  it.each([
    ['|= "first"', "first"],
    ['|= "first" or "second"', "(first | second)"],
    ['|= "first" or "four"', ""],
    ['|= "first" |= "second" != "third"', "(first & second)"],
    ['|= "first" | line_format "{{.a}}" |= "second"', "first"],
    ['|= "first" | label_format a=b |= "second"', "(first & second)"],
    ['|= ip("10.0.0.1")', ""],
    ['|~ "first.*sec(ond|ret)x*"', "(first & (second | secret))"],
    ['|~ "^(first|second) [0-9]+ms [a-z]{3}"', "(first  | second )"],
    ["|~ `(?i)First|second\\d`", "(first~ | second~)"],
    ['|~ "(first)+|x(second)?"', ""],
    ["|~ `first\\x{FFFD}.*second`", "second"],
    ['|> "<_>first<_> second<_>"', "(first &  second)"],
    ['!~ "first"', ""],
    ['| user="a" or user=~"b|c"', "(user=a | (user=b | user=c))"],
    ['| user="a" and size > 5', "user=a"],
    ['| user="a" or size > 5', ""],
    ['| user=~"a|"', ""],
    ['| user!="a" | app_extracted="b" | __error__="x"', ""],
    ['|= "first" | user="a" | json | status="500"', "(first & user=a)"],
  ])("%s tell block filters %j", (stages, want) => {
    const query = parseQuery(`{app="x"} ${stages}`);
    const { formula } = compilePipeline({
      stages: query.kind === "log" ? query.stages : [],
      output: { kind: "log" },
    });
    expect(formula === undefined ? "" : textOf(formula)).toBe(want);
  });

  it("tell block filters nothing of too many texts", () => {
    const texts = (count: number) => Array.from({ length: count }, (_, i) => `"order-${i}"`);
    const formulaOf = (count: number) => {
      const query = parseQuery(`{app="x"} |= ${texts(count).join(" or ")}`);
      const stages = query.kind === "log" ? query.stages : [];
      return compilePipeline({ stages, output: { kind: "log" } }).formula;
    };
    expect(formulaOf(512)).toBeDefined();
    expect(formulaOf(513)).toBeUndefined();
  });
});

function textOf(formula: NeedleFormula): string {
  switch (formula.kind) {
    case "all":
      return `(${formula.of.map(textOf).join(" & ")})`;
    case "any":
      return `(${formula.of.map(textOf).join(" | ")})`;
    case "text":
      return `${Buffer.from(formula.text)}${formula.folds ? "~" : ""}`;
    case "value":
      return `${formula.name}=${Buffer.from(formula.value)}`;
  }
}
