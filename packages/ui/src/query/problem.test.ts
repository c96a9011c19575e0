import { describe, expect, it } from "@jest/globals";
import "@skald/logql/regex";
import { plainWords, problemOf } from "./problem.js";

const atEnd = (text: string) => problemOf(text, text.length);

describe("a problem of a query", () => {
  it.each(["", "  ", '{app="a"}', 'rate({app="a"}[5m])'])("is none of %j", (text) => {
    expect(atEnd(text)).toBeUndefined();
  });

  it.each([
    ["{", "a label"],
    ['{app="a"} |', "a parser"],
    ['{app="a"} |=', "a text in quotes"],
    ["{app=", "a value in quotes"],
    ['{app="a', "its closing quote"],
    ['{app="a",', "another label"],
    ["{app", "="],
    ['rate({app="a"}', "the rest"],
    ['rate({app="a"}[5m', "closing quote or bracket"],
  ])("is that %s is not finished", (text, says) => {
    expect(atEnd(text)).toEqual({ kind: "unfinished", says: expect.stringContaining(says) });
  });

  it("is red when the caret is elsewhere", () => {
    expect(problemOf('{app="a"} |', 2)).toMatchObject({
      kind: "wrong",
      says: "something is missing at the end",
    });
  });

  it.each([
    [
      'sum by (level) (rat({app="a"}[1m]))',
      "no such function or keyword",
      'sum by (level) (rate({app="a"}[1m]))',
    ],
    ["{app='a'}", "double quotes", '{app="a"}'],
    ['{app="a"} | json | a="b" && c="d"', "joined by and", '{app="a"} | json | a="b" and c="d"'],
  ])("of %s has a fix", (text, says, fixed) => {
    const found = problemOf(text, 0);
    expect(found).toMatchObject({
      kind: "wrong",
      says: expect.stringContaining(says),
      fix: { text: fixed },
    });
  });

  it("stands at its place", () => {
    const text = 'sum by (level) (rat({app="a"}[1m]))';
    expect(problemOf(text, 0)).toMatchObject({ start: 16, end: 19, line: 1, column: 17 });
  });

  it.each([
    ["syntax error: unexpected $end", "something is missing at the end"],
    [
      "syntax error: unexpected $end, expecting RANGE or |",
      "something is missing at the end: RANGE or |",
    ],
    ["syntax error: unexpected IDENTIFIER", "no such function or keyword"],
    ["syntax error: unexpected )", "unexpected )"],
    ["parameter required for operation topk", "parameter required for operation topk"],
  ])("%s in plain words", (reason, want) => {
    expect(plainWords(reason)).toBe(want);
  });
});
