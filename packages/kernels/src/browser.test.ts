import { readFileSync } from "node:fs";
import { describe, expect, it } from "@jest/globals";
import * as browser from "./browser.js";
import * as node from "./index.js";
import { findPlain } from "./twin/search.js";

/** The modules that a module loads, itself among them. */
function loadedBy(url: URL, seen = new Set<string>()): Set<string> {
  if (seen.has(url.href)) return seen;
  seen.add(url.href);
  const imports = readFileSync(url, "utf8").matchAll(/(?:from|import) "([^"]+)"/g);
  for (const [, name] of imports) {
    if (name!.startsWith(".")) loadedBy(new URL(name!, url), seen);
    else seen.add(name!);
  }
  return seen;
}

describe("the face for browsers", () => {
  it("has the names of the other", () => {
    expect(Object.keys(browser).sort()).toEqual(Object.keys(node).sort());
  });

  it("loads nothing of Node", () => {
    const loaded = [...loadedBy(new URL("./browser.js", import.meta.url))];
    expect(loaded.length).toBeGreaterThan(10);
    expect(loaded.filter((name) => !name.startsWith("file:"))).toEqual([]);
  });

  it.each([
    ["aab", "ab"],
    ["abcabd", "abd"],
    ["abc", "abcd"],
    ["", "a"],
  ])("finds in %j the text %j as Buffer does", (text, needle) => {
    const hit = findPlain(Buffer.from(text), Buffer.from(needle), 0);
    const want = Buffer.from(text).indexOf(needle);
    expect(hit === Number.MAX_SAFE_INTEGER ? -1 : hit).toBe(want);
  });
});
