import { describe, expect, it } from "@jest/globals";
import { testRuns } from "@skald/testkit";
import fc from "fast-check";
import { arbitraryQuery } from "../testing/arbitrary.js";
import { parseQuery } from "./parser.js";
import { formatQuery, printQuery } from "./print.js";

describe("print", () => {
  it("prints what parses to the same tree", () => {
    fc.assert(
      fc.property(arbitraryQuery(), (expr) => {
        expect(parseQuery(printQuery(expr))).toEqual(expr);
      }),
      { numRuns: testRuns(300) },
    );
  });

  it("formats to what parses to the same tree", () => {
    fc.assert(
      fc.property(arbitraryQuery(), (expr) => {
        expect(parseQuery(formatQuery(expr))).toEqual(expr);
      }),
      { numRuns: testRuns(300) },
    );
  });

  it("is idempotent", () => {
    fc.assert(
      fc.property(arbitraryQuery(), (expr) => {
        const printed = printQuery(expr);
        expect(printQuery(parseQuery(printed))).toBe(printed);
        const formatted = formatQuery(expr);
        expect(formatQuery(parseQuery(formatted))).toBe(formatted);
      }),
      { numRuns: testRuns(300) },
    );
  });
});
