import { describe, expect, it } from "@jest/globals";
import { formatLabels, labelsFromObject } from "@skald/model";
import { Budget } from "../plan/budget.js";
import type { PlanNode, SeriesMatrix } from "../plan/plan.js";
import type { LabelReplace } from "../syntax/ast.js";
import { replaceLabels } from "./engine.js";

function vector(...sets: Record<string, string>[]): SeriesMatrix {
  return {
    pointCount: 1,
    labels: sets.map(labelsFromObject),
    values: sets.map((_, i) => Float64Array.of(i)),
    present: sets.map(() => Uint8Array.of(1)),
  };
}

function node(
  destination: string,
  replacement: string,
  source: string,
  regex: string,
): LabelReplace<PlanNode> {
  const inner = { kind: "vector", value: 1 } as const;
  return { kind: "label_replace", inner, destination, replacement, source, regex };
}

describe("label_replace", () => {
  it.each([
    ["a group and text", node("new", "$1-x", "part", "(.*)"), '{app="e", new="a-x", part="a"}'],
    ["no match", node("new", "$1", "part", "(b)"), '{app="e", part="a"}'],
    ["an anchored match", node("new", "$1", "app", "()"), '{app="e", part="a"}'],
    ["an empty result removes the label", node("part", "", "part", ".*"), '{app="e"}'],
    ["no source", node("dst", "const", "", ""), '{app="e", dst="const", part="a"}'],
    ["a missing source", node("dst", "$1", "nosuch", "(.*)"), '{app="e", part="a"}'],
    ["a named group", node("dst", "$n", "part", "(?P<n>.+)"), '{app="e", dst="a", part="a"}'],
    [
      "a group in braces",
      node("dst", `$${"{1}"}1`, "part", "(.+)"),
      '{app="e", dst="a1", part="a"}',
    ],
    ["an unknown group", node("dst", "x$1y", "part", "(.+)"), '{app="e", dst="x", part="a"}'],
    [
      "groups of one name",
      node("dst", "$n", "part", "(?P<n>x)|(?P<n>.+)"),
      '{app="e", dst="a", part="a"}',
    ],
    [
      "a number that is a name",
      node("dst", "a$01|$1é|", "part", "(.+)"),
      '{app="e", dst="a||", part="a"}',
    ],
    ["the whole match", node("dst", "$0$0", "part", "."), '{app="e", dst="aa", part="a"}'],
    ["a dollar", node("dst", "$$1 $", "part", "."), '{app="e", dst="$1 $", part="a"}'],
  ])("%s", (_, replace, want) => {
    const { labels } = replaceLabels(replace, vector({ app: "e", part: "a" }), new Budget());
    expect(labels.map(formatLabels)).toEqual([want]);
  });

  it("leaves series that have become equal to what is above", () => {
    const replace = node("part", "same", "part", ".*");
    const { labels } = replaceLabels(replace, vector({ part: "a" }, { part: "b" }), new Budget());
    expect(labels.map(formatLabels)).toEqual(['{part="same"}', '{part="same"}']);
  });

  it("refuses a value before it is built when it would take too much memory", () => {
    const budget = new Budget({ maxBytes: 10_000 });
    let series = vector({ x: "0123456789" });
    const double = () => {
      series = replaceLabels(node("x", "$1$1", "x", "(.*)"), series, budget);
    };
    for (let i = 0; i < 8; i++) double();
    expect(series.labels[0]?.values[0]).toHaveLength(2560);
    expect(() => {
      for (let i = 0; i < 40; i++) double();
    }).toThrow("the query needs more than 10000 bytes of memory");
    expect(series.labels[0]?.values[0]?.length).toBeLessThan(10_000);
  });

  it("refuses a bad regular expression", () => {
    expect(() => replaceLabels(node("a", "", "b", "("), vector({ b: "1" }), new Budget())).toThrow(
      "error parsing regexp",
    );
  });
});
