import { describe, expect, it } from "@jest/globals";
import { runStages } from "../../testing/run-stages.js";
import { compilePipeline } from "../pipeline.js";
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
    ['|= ip("x")', 'parse error : stage \'|= ip("x")\' : ip: invalid pattern: "x"'],
    ['|~ ip("1.1.1.1")', "parse error : stage '|~ ip(\"1.1.1.1\")' : ip: invalid operation"],
  ])("refuses %s", (stages, message) => {
    expect(() => runStages(stages, "")).toThrow(message);
  });

  it("tell what a block filter can be asked", () => {
    const text = (value: string) => ({ kind: "text" as const, value });
    const { needles } = compilePipeline({
      stages: [
        { kind: "line_filter", op: "|=", alternatives: [text("one"), text("two")] },
        { kind: "line_filter", op: "!=", alternatives: [text("no")] },
        { kind: "line_filter", op: "|~", alternatives: [text("x+three.*four$")] },
        { kind: "line_filter", op: "|~", alternatives: [text("(?i)any")] },
        { kind: "line_format", template: "x" },
        { kind: "line_filter", op: "|=", alternatives: [text("later")] },
      ],
      output: { kind: "log" },
    });
    expect(needles.map(({ anyOf }) => anyOf.map((value) => Buffer.from(value).toString()))).toEqual(
      [["one", "two"], ["three"]],
    );
  });
});
