import { describe, expect, it } from "@jest/globals";
import { parseCapturingPattern, parseMatchingPattern } from "../../syntax/check.js";
import { runStages } from "../../testing/run-stages.js";

describe("pattern", () => {
  it.each([
    ["<_> user=<user> op=<op>", "<10> user=alice op=read", { user: "alice", op: "read" }],
    ["[<one>] [<two>]", "[1] [2] rest", { one: "1", two: "2" }],
    ["[<one>]", "x [1]", {}],
    ["<a>-<b>-<c>", "no dash", { a: "no dash" }],
    ["<a>-<b>-<c>", "x-y", { a: "x", b: "y" }],
    ["GET <rest>", "GET /home (200)", { rest: "/home (200)" }],
    ["<a> <_>", " x", { a: "" }],
    ["<a>", "", {}],
    ["<ü> <b>", "<ü> x", { b: "x" }],
    ["<first> <rest>", "Grüße aus Köln", { first: "Grüße", rest: "aus Köln" }],
  ])("%s of %s", (pattern, line, want) => {
    expect(runStages(`| pattern \`${pattern}\``, line)?.labels).toEqual(want);
  });

  it.each([
    ["nothing", "at least one capture is required"],
    ["<_> x", "at least one capture is required"],
    ["<a><b>", "found consecutive capture '<a><b>': invalid expression"],
    ["<a> <a>", "duplicate capture name (a): invalid expression"],
  ])("refuses %s", (pattern, message) => {
    expect(() => parseCapturingPattern(pattern)).toThrow(message);
  });

  it("refuses names in a filter", () => {
    expect(() => parseMatchingPattern("a <b>")).toThrow(
      "named captures are not allowed: found '<b>'",
    );
    expect(() => runStages('|> "<_><_>"', "")).toThrow(
      "parse error : stage '|> \"<_><_>\"' : found consecutive capture '<_><_>': invalid expression",
    );
  });
});
