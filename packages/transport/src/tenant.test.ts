import { describe, expect, it } from "@jest/globals";
import { errorCodeOf } from "@skald/model";
import { maxTenantBytes, maxTenants, parseTenant, parseTenants } from "./tenant.js";

const auth = { authEnabled: true, noAuthTenant: "fake" };

describe("parseTenants", () => {
  it.each([
    ["one id", "team-a", ["team-a"]],
    ["every character that is allowed", "aZ09!-_.*'()", ["aZ09!-_.*'()"]],
    ["several, sorted", "b|a", ["a", "b"]],
    ["several, each once", "b|a|b", ["a", "b"]],
    ["the same id twice", "a|a", ["a"]],
    ["metadata behind an id", "a:k=v", ["a"]],
    ["metadata behind each of several", "b:k=v|a:x", ["a", "b"]],
    ["ids that differ in metadata only", "a:k=v|a:k=w", ["a"]],
    ["metadata with any character", "a:k=v w/~", ["a"]],
    ["an empty id among others", "A||B", ["A", "B"]],
    ["an empty id at the end", "A|", ["A"]],
    ["dots within an id", "a..b", ["a..b"]],
    ["three dots", "...", ["..."]],
    ["more than 150 bytes", "t".repeat(200), ["t".repeat(200)]],
    ["the longest", "t".repeat(maxTenantBytes), ["t".repeat(maxTenantBytes)]],
    ["a header sent as a list", ["a", "b"], ["a"]],
  ] as const)("%s", (_name, header, want) => {
    expect(parseTenants(typeof header === "string" ? header : [...header], auth)).toEqual(want);
  });

  it.each([
    ["no header", undefined, "unauthenticated", "no org id"],
    ["an empty header", "", "unauthenticated", "no org id"],
    ["an empty list", [], "unauthenticated", "no org id"],
    ["empty ids only", "||", "unauthenticated", "no org id"],
    ["metadata without an id", ":k=v", "unauthenticated", "no org id"],
    ["a slash", "a/b", "invalid_argument", "tenant ID 'a/b' contains unsupported character '/'"],
    ["a space", "a b", "invalid_argument", "tenant ID 'a b' contains unsupported character ' '"],
    [
      "two headers that were joined",
      "a, b",
      "invalid_argument",
      "tenant ID 'a, b' contains unsupported character ','",
    ],
    [
      "a letter outside of ASCII",
      "zürich",
      "invalid_argument",
      "tenant ID 'zürich' contains unsupported character 'ü'",
    ],
    [
      "such a letter as it comes in a header",
      Buffer.from("zürich").toString("latin1"),
      "invalid_argument",
      "tenant ID 'zürich' contains unsupported character 'ü'",
    ],
    ["this directory", ".", "invalid_argument", "tenant ID is '.' or '..'"],
    ["the directory above", "..", "invalid_argument", "tenant ID is '.' or '..'"],
    ["the directory above among others", "a|..|b", "invalid_argument", "tenant ID is '.' or '..'"],
    [
      "too long an id",
      "t".repeat(769),
      "invalid_argument",
      "tenant ID is too long: max 768 characters, it has 769",
    ],
    [
      "too long an id with a bad character",
      `${"t".repeat(1_000_000)}/`,
      "invalid_argument",
      "tenant ID is too long: max 768 characters, it has 1000001",
    ],
    [
      "too many ids",
      Array.from({ length: maxTenants + 1 }, (_, i) => `t${i}`).join("|"),
      "invalid_argument",
      "more than 1000 org IDs present",
    ],
  ] as const)("refuses %s", (_name, header, code, message) => {
    const error = catchError(() =>
      parseTenants(typeof header === "object" ? [...header] : header, auth),
    );
    expect(errorCodeOf(error)).toBe(code);
    expect((error as Error).message).toBe(message);
  });

  it("takes every request for one tenant when auth is off, whatever the header says", () => {
    const off = { authEnabled: false, noAuthTenant: "one" };
    for (const header of [undefined, "", "a", "a|b", "../x"])
      expect(parseTenants(header, off)).toEqual(["one"]);
  });
});

describe("parseTenant", () => {
  it("gives the one tenant, named once or twice", () => {
    expect(parseTenant("a", auth)).toBe("a");
    expect(parseTenant("a|a", auth)).toBe("a");
    expect(parseTenant(undefined, { authEnabled: false, noAuthTenant: "fake" })).toBe("fake");
  });

  it.each(["a|b", "a|", "|a"])("refuses several: %s", (header) => {
    const error = catchError(() => parseTenant(header, auth));
    expect(errorCodeOf(error)).toBe("invalid_argument");
    expect((error as Error).message).toBe("multiple org IDs present");
  });
});

function catchError(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}
