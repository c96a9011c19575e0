import { describe, expect, it } from "@jest/globals";
import { runStages } from "../../testing/run-stages.js";

const error = (details: string) => ({
  __error__: "LogfmtParserErr",
  __error_details__: `logfmt syntax error at pos ${details}`,
});

describe("logfmt", () => {
  it.each([
    ["a=1 b=\"two words\" c='single' d", { a: "1", b: "two words", c: "'single'" }],
    ['a="esc \\"q\\" \\n \\u00e9" b=x', { a: 'esc "q" \n é', b: "x" }],
    ["a=1 a=2 a=3", { a: "1" }],
    ['"quoted key"=v a=b', { a: "b" }],
    ["a==b c=d", { c: "d" }],
    ['a="open', {}],
    ["key.with.dot=1 key-dash=2 1st=3", { key_with_dot: "1", key_dash: "2", _1st: "3" }],
    ["a= b= c=", {}],
    ["a=1,b=2", {}],
    ["   spaced   =  out  ", {}],
    ["a=b\tc=d", { a: "b", c: "d" }],
    ["url=http://x/?q=1&r=2 t=1", { t: "1" }],
    ["ü=ö k=v", { _: "ö", k: "v" }],
    ['a="" b=""', {}],
    ['a="x"b=1', { a: "x", b: "1" }],
    ['a="bad \\q" b=1', { b: "1" }],
    ['a="\\ud800x" b="\\ud83d\\ude00"', { a: " x", b: "😀" }],
    ["=novalue n=1", { n: "1" }],
    ["", {}],
  ])("%s", (line, want) => {
    expect(runStages("| logfmt", line)).toEqual({ line, labels: want });
  });

  it("keeps empty values when asked", () => {
    expect(runStages("| logfmt --keep-empty", "a= b c=1")?.labels).toEqual({
      a: "",
      b: "",
      c: "1",
    });
  });

  it.each([
    ['"quoted key"=v a=b', "1 : unexpected '\"'", {}],
    ["   spaced   =  out", "13 : unexpected '='", {}],
    ["a==b c=d", "3 : unexpected '='", {}],
    ["x=1 a=1,b=2", "10 : unexpected '='", { x: "1" }],
    ['a="open', "8 : unterminated quoted value", {}],
    ['a="bad \\q"', "11 : invalid quoted value", {}],
    ["\ufffd=1", "4 : invalid key", {}],
  ])("stops at the first fault of %s when strict", (line, details, labels) => {
    expect(runStages("| logfmt --strict", line)?.labels).toEqual({ ...labels, ...error(details) });
  });

  it("drops a row as soon as a value fails a later filter", () => {
    expect(runStages('| logfmt | label_format a="" | a=""', "a=1")).toBeUndefined();
    expect(runStages('| logfmt | label_format a="" | a=""', "b=1")?.labels).toEqual({
      a: "",
      b: "1",
    });
  });
});

describe("logfmt with keys", () => {
  it.each([
    ["b", "a=1 a=2", { b: "" }],
    ['x="a"', "a=1 a=2 a=3", { x: "3" }],
    ['a="e"', "e=2 a=9", { a: "9" }],
    ['a="e"', "a=9 e=2", { a: "2" }],
    ['x=" a ", y="\\"b\\""', "a=1 b=2", { x: "1", y: "2" }],
    ['x="\\"b.c\\"", y="a \\"b\\""', "b.c=1 a=2 b=3", { x: "", y: "" }],
    ["a, b", 'a="q \\" x" b=', { a: 'q " x', b: "" }],
  ])("%s of %s", (keys, line, want) => {
    expect(runStages(`| logfmt ${keys}`, line)?.labels).toEqual(want);
  });

  it("fills what is missing in front of a fault", () => {
    expect(runStages('| logfmt --strict x="a", y="b"', "a=1 b==2")?.labels).toEqual({
      x: "1",
      y: "",
      ...error("7 : unexpected '='"),
    });
  });

  it("replaces what an earlier parser found, also where a stage left it out since", () => {
    expect(runStages("| logfmt | logfmt a", "a=1")?.labels).toEqual({ a: "1" });
    expect(runStages("| logfmt | keep b | logfmt a", "a=1 b=2")?.labels).toEqual({
      a: "1",
      b: "2",
    });
    expect(runStages('| logfmt | logfmt a="b"', "a=1 b=2")?.labels).toEqual({ a: "2", b: "2" });
  });

  it("gives a taken name another one, and no empty label for it", () => {
    const input = { labels: { app: "x" } };
    expect(runStages("| logfmt app", "app=1 app=2", input)?.labels).toEqual({ app_extracted: "2" });
    expect(runStages("| logfmt app", "b=1", input)?.labels).toEqual({});
  });

  it.each([
    ["key.with.dot", "unexpected char ."],
    ["1st", "unexpected char 1"],
    ["a b", "syntax error: unexpected KEY, expecting $end or STRING"],
    ["", "syntax error: unexpected $end, expecting STRING or KEY"],
  ])("refuses the key %j", (key, reason) => {
    expect(() => runStages(`| logfmt k="${key}"`, "")).toThrow(
      `parse error : stage '| logfmt k="${key}"' : cannot parse expression [${key}]: ${reason}`,
    );
  });
});
