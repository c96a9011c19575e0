import { describe, expect, it } from "@jest/globals";
import { labelsFromObject } from "@skald/model";
import { decodeRowLabels, encodeRowLabels } from "./row-labels.js";

const of = (
  stream: Record<string, string>,
  metadata: Record<string, string> = {},
  parsed: Record<string, string> = {},
) => ({
  labels: labelsFromObject({ ...stream, ...metadata, ...parsed }),
  categories: {
    stream: labelsFromObject(stream),
    structuredMetadata: labelsFromObject(metadata),
    parsed: labelsFromObject(parsed),
  },
});

describe("label sets of rows", () => {
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
    expect(decodeRowLabels(structuredClone(encodeRowLabels(sets)))).toEqual(sets);
    expect(decodeRowLabels(encodeRowLabels([]))).toEqual([]);
  });

  it("hold names and values once", () => {
    const sets = Array.from({ length: 9 }, (_, i) => of({ app: "a" }, { trace: `t${i % 3}` }));
    const { names, values } = encodeRowLabels(sets);
    expect(names).toEqual([["app", "trace"], ["app"], ["trace"], []]);
    expect(values).toEqual(["a", "t0", "t1", "t2"]);
  });
});
