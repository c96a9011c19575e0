import { describe, expect, it } from "@jest/globals";
import { formatLabels, labelsFromObject } from "@skald/model";
import type { LabelReplaceNode } from "../plan/plan.js";
import type { SeriesMatrix } from "../plan/result.js";
import { replaceLabels } from "./label-replace.js";

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
): LabelReplaceNode {
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
    ["the whole match", node("dst", "$0$0", "part", "."), '{app="e", dst="aa", part="a"}'],
    ["a dollar", node("dst", "$$1 $", "part", "."), '{app="e", dst="$1 $", part="a"}'],
  ])("%s", (_, replace, want) => {
    const { labels } = replaceLabels(replace, vector({ app: "e", part: "a" }));
    expect(labels.map(formatLabels)).toEqual([want]);
  });

  it("refuses to make two samples one series", () => {
    const replace = node("part", "same", "part", ".*");
    expect(() => replaceLabels(replace, vector({ part: "a" }, { part: "b" }))).toThrow(
      'label_replace gives duplicate series {part="same"}',
    );
  });

  it("joins series that are never there together", () => {
    const matrix = {
      pointCount: 2,
      labels: [labelsFromObject({ part: "a" }), labelsFromObject({ part: "b" })],
      values: [Float64Array.of(1, 0), Float64Array.of(0, 2)],
      present: [Uint8Array.of(1, 0), Uint8Array.of(0, 1)],
    };
    const joined = replaceLabels(node("part", "", "part", ".*"), matrix);
    expect(joined.values).toEqual([Float64Array.of(1, 2)]);
  });

  it("refuses a bad regular expression", () => {
    expect(() => replaceLabels(node("a", "", "b", "("), vector({ b: "1" }))).toThrow(
      "error parsing regexp",
    );
  });
});
