import { describe, expect, it } from "@jest/globals";
import { addFilter, removeMatcher, removeStage } from "./edit.js";

const label = { kind: "label" } as const;
const json = { kind: "field", parser: "json" } as const;

describe("a click on a value", () => {
  it.each([
    ["takes the place of any value", '{app=~".+"}', ["app", "web", false], label, '{app="web"}'],
    ["adds a matcher", '{app="web"}', ["pod", "a", false], label, '{app="web", pod="a"}'],
    ["makes a list of two", '{app="web"}', ["app", "db", false], label, '{app=~"web|db"}'],
    ["adds to a list", '{app=~"web|db"}', ["app", "x.y", false], label, '{app=~"web|db|x\\\\.y"}'],
    ["adds nothing twice", '{app="web"}', ["app", "web", false], label, '{app="web"}'],
    ["takes a value out", '{app=~".+"}', ["app", "web", true], label, '{app=~".+", app!="web"}'],
    [
      "takes two values out",
      '{a="b", app!="web"}',
      ["app", "db", true],
      label,
      '{a="b", app!~"web|db"}',
    ],
    [
      "keeps an expression",
      '{app=~"w.*"}',
      ["app", "web", false],
      label,
      '{app=~"w.*", app="web"}',
    ],
    ["quotes", '{a="b"}', ["app", '"}\\\n', false], label, '{a="b", app="\\"}\\\\\\n"}'],
    [
      "reads a field first",
      '{a="b"}',
      ["status", "500", false],
      json,
      '{a="b"} | json | status="500"',
    ],
    [
      "reads a field once",
      '{a="b"} | json',
      ["status", "500", true],
      json,
      '{a="b"} | json | status!="500"',
    ],
    [
      "filters metadata",
      '{a="b"}',
      ["trace", "1", false],
      { kind: "metadata" } as const,
      '{a="b"} | trace="1"',
    ],
    [
      "keeps the comment",
      '{a="b"} # all\n',
      ["trace", "1", false],
      { kind: "metadata" } as const,
      '{a="b"} | trace="1" # all\n',
    ],
    [
      "stands before an unwrap",
      'sum(sum_over_time({a="b"} | json | unwrap x [5m]))',
      ["status", "500", false],
      json,
      'sum(sum_over_time({a="b"} | json | status="500" | unwrap x [5m]))',
    ],
  ] as const)("%s", (_, text, [name, value, negated], origin, want) => {
    expect(addFilter(text, { name, value, negated }, origin)).toBe(want);
  });

  it("adds a filter only once", () => {
    const once = addFilter('{a="b"}', { name: "x", value: "1", negated: false }, json);
    expect(addFilter(once, { name: "x", value: "1", negated: false }, json)).toBe(once);
  });
});

describe("removing", () => {
  it.each([
    ["the first matcher", () => removeMatcher('{a="b", c="d"}', 0, 0), '{c="d"}'],
    ["the last matcher", () => removeMatcher('{a="b", c="d"}', 0, 1), '{a="b"}'],
    [
      "a matcher behind a comment",
      () => removeMatcher('{a="b", # two\n c="d"}', 0, 1),
      '{a="b" # two\n }',
    ],
    ["a stage", () => removeStage('{a="b"} |= "x" | json', 0, 0), '{a="b"} | json'],
    [
      "a stage on its line",
      () => removeStage('{a="b"}\n  | json\n  | x="1"', 0, 0),
      '{a="b"}\n\n  | x="1"',
    ],
  ])("%s", (_, edit, want) => {
    expect(edit()).toBe(want);
  });
});
