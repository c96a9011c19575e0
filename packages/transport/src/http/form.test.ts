import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { parseForm } from "./form.js";

const fieldText = fc.string({
  unit: fc.constantFrom("a", "b", "+", "%20", "%2B", "%", "=", "ü", ""),
});

describe("parseForm", () => {
  it("reads what URLSearchParams reads", () => {
    fc.assert(
      fc.property(fc.array(fieldText), (fields) => {
        const text = fields.join("&");
        expect([...parseForm(Buffer.from(text))]).toEqual([...new URLSearchParams(text)]);
      }),
      { seed: 1_700_006_402, numRuns: 300 },
    );
  });

  it("refuses too many fields before it reads one", () => {
    expect([...parseForm(Buffer.from("a&".repeat(4095)))]).toHaveLength(4095);
    for (const field of ["&", "a&", "a=b&"]) {
      expect(() => parseForm(Buffer.from(field.repeat(4096)))).toThrow(
        expect.objectContaining({
          code: "invalid_argument",
          message: "too many parameters: limit is 4096",
        }),
      );
    }
  });

  it("gives the parser no plus sign to cut the text at", () => {
    const given: string[] = [];
    const { URLSearchParams: Real } = globalThis;
    class Watched extends Real {
      constructor(init: string) {
        given.push(init);
        super(init);
      }
    }
    globalThis.URLSearchParams = Watched as typeof Real;
    try {
      expect(parseForm(Buffer.from("query=++a%2B+")).get("query")).toBe("  a+ ");
    } finally {
      globalThis.URLSearchParams = Real;
    }
    expect(given).toEqual(["query=  a%2B "]);
  });
});
