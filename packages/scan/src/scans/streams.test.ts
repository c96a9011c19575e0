import { afterAll, describe, expect, it } from "@jest/globals";
import { labelSetsOf } from "@skald/contracts";
import { formatLabels, type Matcher } from "@skald/model";
import type { LocalRef } from "@skald/storage";
import { SourceCache } from "../source/cache.js";
import { makeDirectory, makeHead, makeSegment, row, testDayNs } from "../testing/sources.js";
import { scanLabels, scanStreams } from "./streams.js";

const directory = makeDirectory();
afterAll(directory.remove);
const rows = [row("a", 10, "x"), row("b", 20, "x"), row("a", 30, "x"), row("c", 40, "x")];
const sources: [string, LocalRef][] = [
  ["a segment", makeSegment(directory.path, rows, { id: "s" })],
  ["a head", makeHead(rows, { id: "h", rowsPerBlock: 1 })],
];
const equal = (value: string): Matcher => ({ name: "app", op: "=", value });

function streamsOf(
  ref: LocalRef,
  selectors: readonly (readonly Matcher[])[],
  from: number,
  to: number,
  check = () => {},
): string[] {
  const span = { fromNs: testDayNs + BigInt(from), toNs: testDayNs + BigInt(to) + 1n };
  const task = { sources: [{ ref }, { ref }], selectors, ...span };
  return new SourceCache({ maxOpenSegments: 1, maxIndexBytes: 0 }).use((open) => {
    const found = scanStreams(task, open, check);
    const texts = labelSetsOf(found).map(formatLabels);
    const parts = [0, 1].map((index) => ({ ...task, part: { index, count: 2 } }));
    const inParts = parts.flatMap((part) => labelSetsOf(scanStreams(part, open, check)));
    expect(inParts.map(formatLabels).sort()).toEqual([...texts].sort());
    const values = texts.map((text) => text.slice('{app="'.length, -2)).sort();
    expect(scanLabels({ ...task, label: "app" }, open, check)).toEqual(values);
    expect(
      parts.flatMap((part) => scanLabels({ ...part, label: "app" }, open, check)).sort(),
    ).toEqual(values);
    expect(scanLabels(task, open, check)).toEqual(texts.length === 0 ? [] : ["app"]);
    expect(scanLabels({ ...task, label: "none" }, open, check)).toEqual([]);
    return texts.sort();
  });
}

describe.each(sources)("streams and labels of %s", (_name, ref) => {
  it.each([
    ["all", [], 0, 100, ["a", "b", "c"]],
    ["a part of the time, both ends included", [], 20, 30, ["a", "b"]],
    ["between rows", [], 31, 39, []],
    ["one selector", [[equal("a")]], 0, 100, ["a"]],
    [
      "any of two selectors, each once",
      [[equal("a")], [equal("c")], [equal("a")]],
      0,
      100,
      ["a", "c"],
    ],
    ["a selector outside its time", [[equal("c")]], 0, 39, []],
    ["a selector of nothing", [[equal("z")]], 0, 100, []],
  ] as const)("finds %s", (_case, selectors, from, to, want) => {
    expect(streamsOf(ref, selectors, from, to)).toEqual(want.map((app) => `{app="${app}"}`));
  });

  it("ends when the request was cancelled", () => {
    const check = () => {
      throw new Error("cancelled");
    };
    expect(() => streamsOf(ref, [], 0, 20, check)).toThrow("cancelled");
  });
});
