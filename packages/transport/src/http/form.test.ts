import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { parseForm } from "./body.js";

const fieldText = fc.string({
  unit: fc.constantFrom(
    "a",
    "b",
    "+",
    "%20",
    "%2B",
    "%41%5a",
    "%c3%bc",
    "%C3",
    "%ff",
    "=",
    "&",
    "ü",
    "\ufeff",
    "",
  ),
});

describe("parseForm", () => {
  it("reads what URLSearchParams reads", () => {
    fc.assert(
      fc.property(fc.array(fieldText), (fields) => {
        const text = fields.join("&");
        // The parser of Node is wrong where an escape that is no UTF-8 stands beside a letter that is not escaped.
        const escaped = text.replace(/[^ -~]/g, encodeURIComponent);
        expect([...parseForm(Buffer.from(text))]).toEqual([...new URLSearchParams(escaped)]);
      }),
      { seed: 1_700_006_402, numRuns: 300 },
    );
  });

  it("refuses too many fields before it reads one", () => {
    expect([...parseForm(Buffer.from("a&".repeat(16_383)))]).toHaveLength(16_383);
    for (const field of ["&", "a&", "a=b&"]) {
      expect(() => parseForm(Buffer.from(field.repeat(16_384)))).toThrow(
        expect.objectContaining({
          code: "invalid_argument",
          message: "too many parameters: limit is 16384",
        }),
      );
    }
  });

  it("refuses a field that is too long before it reads one", () => {
    const fits = `a=b&query=${"+".repeat(512 * 1024 - 6)}`;
    expect(parseForm(Buffer.from(`${fits}&c=d`)).get("query")).toHaveLength(512 * 1024 - 6);
    expect(() => parseForm(Buffer.from(`${fits}+&c=d`))).toThrow(
      "input size too long: limit of a parameter is 524288 bytes",
    );
  });

  it.each([
    ["a=%zz", "%zz"],
    ["a=%zzmore", "%zz"],
    ["%4=b", "%4"],
    ["a=%4=b", "%4="],
    ["a=b&c=%", "%"],
    ["a=%e", "%e"],
  ])("refuses an escape that is none: %s", (form, shown) =>
    expect(() => parseForm(Buffer.from(form))).toThrow(
      expect.objectContaining({
        code: "invalid_argument",
        message: `invalid URL escape "${shown}"`,
      }),
    ),
  );
});
