import { describe, expect, it } from "@jest/globals";
import { runStages } from "../../testing/run-stages.js";
import { parseJsonPath } from "./json.js";

/** What a value that cannot be read leaves of `a`. */
const error = (details: string) => ({
  a: "",
  __error__: "JSONParserErr",
  __error_details__: details,
});

describe("json with paths", () => {
  it.each([
    ['a="b.c"', '{"b":{"c":"x"}}', { a: "x" }],
    ['a="b[1].c"', '{"b":[{"c":1},{"c":2}]}', { a: "2" }],
    ['a="[1]"', "[1,2]", { a: "2" }],
    ['a="[\\"k e\\"]"', '{"k e":"x"}', { a: "x" }],
    ['a="b[\\"c.d\\"]"', '{"b":{"c.d":"x"}}', { a: "x" }],
    ["b", '{"b":true}', { b: "true" }],
    ['a=" b . c [ 0 ] "', '{"b":{"c":["x"]}}', { a: "x" }],
    ['a="[\\"b\\\\c\\"]"', '{"b\\\\c":"x"}', { a: "x" }],
    ['a="b", c="d"', '{"b":1}', { a: "1", c: "" }],
    ['a="b"', '{"b":null}', { a: "" }],
    ['a="b"', '{"b":{"c": [1, 2]}}', { a: '{"c": [1, 2]}' }],
    ['a="b"', '{"b":"x\\ny"}', { a: "x\ny" }],
    ['a="b"', '{"\\u0062":"x"}', { a: "x" }],
    ['a="b"', '{"b":1,"c":', { a: "1" }],
    ['a="c"', '{"b":1,"c"', { a: "" }],
    ['a="b.c"', '{"b":1,"b":{"c":2}}', { a: "2" }],
    ['a="b"', '"text"', { a: "" }],
    ['n, x="k", x="g"', '{"k":"1","g":"2"}', { n: "", x: "2" }],
    ['n, x="k", x="g"', '{"g":"2","k":"1"}', { n: "", x: "1" }],
    ['a="b"', "42", { __error__: "JSONParserErr" }],
    ['a="b"', ' {"b":1}', { __error__: "JSONParserErr" }],
    ['a="b"', "", {}],
    ['a="b"', '{"b":{"c":1', error("Value looks like object, but can't find closing '}' symbol")],
    ['a="b"', '{"b":[1', error("Value is array, but can't find closing ']' symbol")],
    ['a="b"', '{"b":"x', error("Value is string, but can't find closing '\"' symbol")],
    ['a="b"', '{"b":nul}', error("Unknown value type")],
    ['a="b.c"', '{"b":{"c":nul}}', error("Unknown value type")],
    ['a="b[0]"', '{"b":[nul]}', error("Unknown value type")],
    ['a="b"', '{"b":', error("Malformed JSON error")],
    ['a="b", c="d"', '{"d":1,"b":nul}', { ...error("Unknown value type"), c: "1" }],
    ['a="b"', '{"c":nul}', { a: "" }],
  ])("%s of %s", (paths, line, want) => {
    expect(runStages(`| json ${paths}`, line)?.labels).toEqual(want);
  });

  it.each([
    ['| json | json a="b"', { a: "2", b: "2" }],
    ["| json | keep b | json a", { a: "1", b: "2" }],
    ['| json | label_format a="x" | json a="b"', { a: "2", b: "2" }],
  ])("replaces what an earlier parser found: %s", (stages, want) => {
    expect(runStages(stages, '{"a":"1","b":"2"}')?.labels).toEqual(want);
  });

  it("gives a taken name another one, and no empty label for it", () => {
    const input = { labels: { app: "x" } };
    expect(runStages("| json app", '{"app":1}', input)?.labels).toEqual({ app_extracted: "1" });
    expect(runStages("| json app", "{}", input)?.labels).toEqual({});
  });

  it.each([
    ["[", "syntax error: unexpected $end, expecting STRING or INDEX"],
    ["", "syntax error: unexpected $end, expecting FIELD or ["],
    ["a.", "syntax error: unexpected $end, expecting FIELD"],
    ["a..b", "syntax error: unexpected ., expecting FIELD"],
    ["a-b", "unexpected char -"],
    ["a[-1]", "unexpected char -"],
    ["é", "unexpected char é"],
    ["a.😀", "unexpected char 😀"],
    ["a[b]", "syntax error: unexpected FIELD, expecting STRING or INDEX"],
    ["a[1", "non-integer value: "],
    ["a[1.5]", "cannot use float as array index"],
    ["a[1x]", "non-integer value: x"],
    ['["a\\"b"]', "syntax error: unexpected FIELD, expecting ]"],
    ['["a]', "syntax error: unexpected $end, expecting ]"],
    ["a b", "syntax error: unexpected FIELD"],
    ["a]", "syntax error: unexpected ]"],
    [".a", "syntax error: unexpected ., expecting FIELD or ["],
  ])("refuses the path %j", (path, reason) => {
    expect(() => parseJsonPath(path)).toThrow(`cannot parse expression [${path}]: ${reason}`);
    expect(() => runStages(`| json x=${JSON.stringify(path)}`, "")).toThrow(
      `parse error : stage '| json x=${JSON.stringify(path)}' : cannot parse expression`,
    );
  });
});
