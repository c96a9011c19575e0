import { describe, expect, it } from "@jest/globals";
import type { LabelFilter } from "../../syntax/ast.js";
import { runStages } from "../../testing/run-stages.js";
import type { RowState } from "../row/row.js";
import { compileLabelFilter } from "./label-filter.js";

const run = (filter: string, line: string) => runStages(`| logfmt --keep-empty | ${filter}`, line);

describe("label filters", () => {
  it("refuse durations beyond 64 bits", () => {
    const labels = run("a > 1s", "a=9223372036854775808ns")?.labels;
    expect(labels?.__error_details__).toBe('time: invalid duration "9223372036854775808ns"');
  });

  it.each([
    ['a="1"', "a=1", true],
    ['a!="1"', "b=1", true],
    ['a=""', "b=1", true],
    ['a!=""', "b=1", false],
    ['a=~"x|y"', "a=y", true],
    ['a="x" or a="y" or b="1" or a="z"', "a=z", true],
    ['a="x" or a="y" or b="1" or a="z"', "a=q b=1", true],
    ['a="x" or a="y" or b="1" or a="z"', "a=q", false],
    ['a="x" or a!="y"', "a=y", false],
    ['a="x" or a=~"y.+" or a=""', "a=yy", true],
    ['a="x" or a=~"y.+" or a=""', "b=1", true],
    ['a="x" or a=~"y.+" or a=""', "a=y", false],
    ['a=~"x"', "a=xy", false],
    ['a!~"x.y"', "a=xxy", false],
    ['a=~"(?i)DENY"', "a=deny", true],
    ['a=~"1.*"', "a=::1", true],
    ['a=~"de.*|bad"', "a=xdenied", true],
    ['a=~"de.*|bad"', "a=xbad", false],
    // an empty regex is no condition, as an empty text box of a dashboard makes it
    ['a=~""', "a=1", true],
    ['a=~""', "b=1", true],
    ['a=~"(?i)"', "a=1", true],
    ['a=~"()"', "a=1", true],
    ['a=~"(?:(?i))"', "a=1", true],
    ['a!~""', "a=1", false],
    ['a!~""', "b=1", false],
    ["a > 5", "a=10", true],
    ["a > 5", "b=10", false],
    ["a != 5", "b=10", false],
    ["a == 10", "a=1e1", true],
    ["a == 1000", "a=1_000", true],
    ["a > 5", "a=Inf", true],
    ["a > 5", "a=NaN", false],
    ["a <= -0.5", "a=-.5", true],
    ["a >= 1h", "a=1h30m", true],
    ["a == 7ms", "a=7ms", true],
    ["a < 2s", "a=-3s", true],
    ["a == 1500us", "a=1.5ms", true],
    ["a > 1s", "a=2562047h47m16.854775807s", true],
    ["a < 1s", "a=-2562047h47m16.854775808s", true],
    ["a > 1MB", "a=1MiB", true],
    ["a == 1KiB", "a=1024", true],
    ["a < 5B", "a=4.9", true],
    ['a = ip("10.0.0.0/8")', "a=10.1.1.1", true],
    ['a != ip("10.0.0.0/8")', "a=bad", true],
    ['a != ip("10.0.0.0/8")', "b=bad", false],
    ['a="1" or b="2"', "b=2", true],
    ['a="1" and b="2"', "a=1", false],
    ['a="1", b="2"', "a=1 b=2", true],
    ['(a="1" or b="2") and c="3"', "b=2 c=4", false],
  ])("%s on %s", (filter, line, want) => {
    expect(run(filter, line) !== undefined).toBe(want);
  });

  it.each([
    ["a > 5", "a=0x10", 'strconv.ParseFloat: parsing "0x10": invalid syntax'],
    ["a > 5", "a=", 'strconv.ParseFloat: parsing "": invalid syntax'],
    ["a > 5", "a=1e999", 'strconv.ParseFloat: parsing "1e999": value out of range'],
    ["a > 1h", "a=100", 'time: missing unit in duration "100"'],
    ["a > 1h", "a=2d", 'time: unknown unit "d" in duration "2d"'],
    ["a > 1h", "a=2constructor", 'time: unknown unit "constructor" in duration "2constructor"'],
    ["a > 1h", "a=abc", 'time: invalid duration "abc"'],
    ["a > 1MB", "a=abc", 'strconv.ParseFloat: parsing "": invalid syntax'],
    ["a > 1MB", "a=1constructor", "unhandled size name: constructor"],
    ["a > 1MB", "a=1e3", "unhandled size name: e3"],
  ])("%s keeps %s with an error", (filter, line, details) => {
    expect(run(filter, line)?.labels).toMatchObject({
      __error__: "LabelFilterErr",
      __error_details__: details,
    });
  });

  it("keep the first error, and ask both sides of an and", () => {
    expect(run("a > 5 and b >= 1h", "a=x b=y")?.labels).toMatchObject({
      __error_details__: 'strconv.ParseFloat: parsing "x": invalid syntax',
    });
    expect(run("a > 5 and b >= 1h or c = 5B", "a=-1 b=y c=z")?.labels).toMatchObject({
      __error_details__: 'time: invalid duration "y"',
    });
    expect(run("a > 5 and b >= 1h", "a=x b=1m")).toBeUndefined();
  });

  it("compare errors, but not their details", () => {
    expect(runStages('| json | __error__="JSONParserErr"', "x")).toBeDefined();
    expect(runStages('| json | __error__=""', "x")).toBeUndefined();
    expect(runStages('| json | __error_details__!=""', "x")).toBeUndefined();
  });

  it("let rows with an error pass an address filter", () => {
    expect(runStages('| json | a = ip("10.0.0.1")', "x")).toBeDefined();
  });

  it("look at stream labels and metadata", () => {
    const input = { labels: { app: "x" }, metadata: { user: "bob", app: "y" } };
    expect(runStages('| app="x" | user=~"b.b" | app_extracted="y"', "l", input)).toBeDefined();
    expect(runStages('| app="y"', "l", input)).toBeUndefined();
    expect(runStages('| user=""', "l", input)).toBeUndefined();
  });

  it("look a label up once, however many values are allowed", () => {
    const matchers = Array.from(
      { length: 1400 },
      (_, i): LabelFilter => ({
        kind: "string",
        matcher: { name: i % 2 === 0 ? "a" : "b", op: "=", value: `v${i}` },
      }),
    );
    const filter = matchers.reduce((left, right) => ({ kind: "or", left, right }));
    const asked: number[] = [];
    const labels = {
      names: { slotOf: (name: string) => name.charCodeAt(0) },
      find: (slot: number) => asked.push(slot) > 0,
      foundBytes: Buffer.from("v1399"),
      foundStart: 0,
      foundEnd: 5,
    };
    const test = compileLabelFilter(filter)({ labels } as unknown as RowState);
    expect(test()).toBe(true);
    expect(asked).toEqual([97, 98]);
  });

  it("refuse a bad regex or address", () => {
    expect(() => runStages('| a=ip("x")', "")).toThrow(
      'parse error : stage \'| a=ip("x")\' : ip: invalid pattern: "x"',
    );
  });
});
