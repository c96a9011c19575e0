import { describe, expect, it } from "@jest/globals";
import { errorCodeOf, refuseNewerVersion, SkaldError, textForClients } from "./errors.js";

function outcome(found: unknown, known = 1): string {
  try {
    refuseNewerVersion("folder/file", { found, known });
    return "";
  } catch (error) {
    expect(error).toMatchObject({ code: "newer_version", status: 503 });
    expect(textForClients(error)).not.toContain("folder");
    return (error as Error).message;
  }
}

describe("SkaldError", () => {
  it("knows the place of a fault of ours, and spends nothing on that of a client's", () => {
    const before = Error.stackTraceLimit;
    const frames = (error: Error) => error.stack?.match(/^ +at /gm)?.length ?? 0;
    expect(frames(new SkaldError("internal", "x"))).toBeGreaterThan(0);
    expect(frames(new SkaldError("invalid_argument", "x"))).toBe(0);
    expect(frames(new SkaldError("unavailable", "x", { status: 429 }))).toBe(0);
    expect(Error.stackTraceLimit).toBe(before);
  });
});

describe("refuseNewerVersion", () => {
  it.each([2, 4, 7, 8, 11, 98])("refuses version %i, and names the file", (found) => {
    expect(outcome(found)).toContain(`folder/file has format version ${found}, this program knows`);
  });

  it.each([
    ["a known one", 1],
    ["an older one", 0],
    ["one with an even number of one bits", 3],
    ["one above all versions", 100],
    ["a negative one", -2],
    ["half a one", 2.5],
    ["a text", "2"],
    ["none", undefined],
  ])("leaves %s to the caller", (_, found) => expect(outcome(found)).toBe(""));

  it("takes no flipped bit of a version for another one", () => {
    for (const known of [1, 2, 4, 7, 8, 11])
      for (let bit = 0; bit < 31; bit++) expect(outcome(known ^ (1 << bit), known)).toBe("");
  });

  it("knows the next versions of a later one", () => {
    expect(outcome(2, 2)).toBe("");
    expect(outcome(4, 2)).toContain("versions up to 2");
    expect(() => refuseNewerVersion("x", { found: 1, known: 3 })).toThrow("even number");
  });
});

describe("the code of what is thrown, and what clients are told", () => {
  it.each([
    [new SkaldError("not_found", "no such thing"), "not_found", "no such thing"],
    [new SkaldError("internal", "/secret"), "internal", "internal server error"],
    [new TypeError("x is undefined"), "internal", "internal server error"],
    ["a text", "internal", "internal server error"],
    [AbortSignal.abort().reason, "cancelled", "the request was cancelled by the client"],
    [new DOMException("aborted", "TimeoutError"), "unavailable", "no answer in time"],
  ])("%s", (error, code, text) => {
    expect([errorCodeOf(error), textForClients(error)]).toEqual([code, text]);
  });
});
