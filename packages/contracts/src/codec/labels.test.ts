import { describe, expect, it } from "@jest/globals";
import type { RowLabels } from "@skald/logql";
import { labelsFromObject } from "@skald/model";
import { decode, encode } from "./codec.js";

const of = (
  stream: Record<string, string>,
  metadata: Record<string, string> = {},
  parsed: Record<string, string> = {},
): RowLabels => ({
  labels: labelsFromObject({ ...stream, ...metadata, ...parsed }),
  categories: {
    stream: labelsFromObject(stream),
    structuredMetadata: labelsFromObject(metadata),
    parsed: labelsFromObject(parsed),
  },
});

describe("label sets of rows", () => {
  const crossed = (sets: readonly RowLabels[]) => decode("RowLabels", encode("RowLabels", sets));

  it("come out as they went in", () => {
    const shared = of({ app: "a", pod: "p" });
    const sets = [
      shared,
      of({}),
      of({ app: "a", pod: "q" }, { trace: "t1" }),
      shared,
      of({ app: "a", pod: "q" }, { trace: "t2", app_extracted: "ü" }, { x: "a" }),
      { ...of({ app: "a" }), labels: { names: ["app", "x"], values: ["a", ""] } },
    ];
    expect(crossed(sets)).toEqual(sets);
    expect(crossed([])).toEqual([]);
  });

  it("are one object where they were one, and hold names once", () => {
    const { categories } = of({ app: "a", pod: "p" });
    const rows = Array.from({ length: 9 }, (_, i) => of({ app: "a" }, { trace: `t${i}` }));
    const found = crossed(rows.map((row) => ({ ...row, categories })));
    expect(new Set(found.map((row) => row.categories.stream)).size).toBe(1);
    expect(new Set(found.map((row) => row.labels.names)).size).toBe(1);
    expect(new Set(found.map((row) => row.labels)).size).toBe(9);
  });
});

describe("label sets", () => {
  it("whose names look like others when joined are not taken for them", () => {
    const sets = [[], [""], ["a\0b"], ["a", "b"], ["a\0b"]].map((names) => ({
      names,
      values: names.map((_, i) => `v${i}`),
    }));
    expect(decode("LabelSets", encode("LabelSets", sets))).toEqual(sets);
  });
});
