import { describe, expect, it } from "@jest/globals";
import { isPlain, runsOf } from "./ansi.js";
import { fieldOrder, foldLines, parseLine, parseLogfmt } from "./parse-line.js";

describe("a line", () => {
  it.each([
    ['{"msg":"hi","a":{"b":1},"c":[1,2],"d":null}', "json", "hi", { a_b: "1", c: "[1,2]" }],
    ['level=info msg="a \\"b\\"" n=1', "logfmt", 'a "b"', { level: "info", n: "1" }],
    ["plain text a=b", "text", "plain text a=b", {}],
    ['{"broken": ', "text", '{"broken": ', {}],
    ["a=b", "text", "a=b", {}],
    ["", "text", "", {}],
    ['["a"]', "text", '["a"]', {}],
  ])("%s", (text, format, message, fields) => {
    const parsed = parseLine(text);
    expect(parsed).toMatchObject({ format, message });
    expect(Object.fromEntries(parsed.fields)).toEqual(fields);
  });

  it("of 5,000 fields, or deep ones, is read", () => {
    const many = Object.fromEntries(Array.from({ length: 6000 }, (_, at) => [`f${at}`, at]));
    expect(parseLine(JSON.stringify(many)).fields.length).toBe(5000);
    let deep = "1";
    for (let level = 0; level < 500; level++) deep = `{"a":${deep}}`;
    expect(parseLine(deep).format).toBe("json");
  });

  it("takes its time for hostile logfmt", () => {
    expect(parseLogfmt(`a="${"\\".repeat(50_000)}`)).toBeUndefined();
    expect(parseLogfmt(`${"a".repeat(50_000)} `)).toBeUndefined();
  });

  it("shows fields of the query first, then those that differ", () => {
    const lines = ["a=1 same=x status=200 user=u1", "a=2 same=x status=500 user=u2"].map(parseLine);
    const order = fieldOrder(lines, ["user"]);
    const names = [...order.keys()].sort((a, b) => order.get(a)! - order.get(b)!);
    expect(names).toEqual(["user", "status", "a", "same"]);
  });

  it("of many lines is folded", () => {
    expect(foldLines("error\n  at a\n  at b\n")).toEqual({ first: "error", more: 2 });
    expect(foldLines("one")).toEqual({ first: "one", more: 0 });
  });
});

describe("colour codes", () => {
  it("are found again in every text", () => {
    expect(isPlain("a \x1b[31mred")).toBe(false);
    expect(runsOf("\x1b[31mred")).toEqual([{ text: "red", className: "a-red" }]);
    expect(isPlain("\x1b[31mred")).toBe(false);
  });

  it.each([
    ["plain", [["plain", ""]]],
    [
      "\x1b[31mred\x1b[0m no",
      [
        ["red", "a-red"],
        [" no", ""],
      ],
    ],
    [
      "\x1b[1;32mok\x1b[22m x",
      [
        ["ok", "a-bold a-green"],
        [" x", "a-green"],
      ],
    ],
    ["\x1b[38;5;196mx", [["x", ""]]],
    [
      "a\x1bb\x07",
      [
        ["a", ""],
        ["␛", "ctl"],
        ["b", ""],
        ["␇", "ctl"],
      ],
    ],
    [
      "a\u202eb",
      [
        ["a", ""],
        ["·", "ctl"],
        ["b", ""],
      ],
    ],
    ["\x1b[2Jx", [["x", ""]]],
  ])("%j", (text, runs) => {
    expect(runsOf(text).map(({ text: part, className }) => [part, className])).toEqual(runs);
  });
});
