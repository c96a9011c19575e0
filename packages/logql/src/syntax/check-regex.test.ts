import { describe, expect, it } from "@jest/globals";
import { RE2JS } from "re2js";
import { regexCost } from "./check.js";

describe("regexCost", () => {
  it.each([
    ["abc"],
    ["a{1000}"],
    ["(?:ab{10}c){100}"],
    ["x{2,50}y"],
    ["[a-z]{30}"],
    ["[]{3}]{400}"],
    ["\\Q){9}\\E{3}"],
    ["(?:[[:alpha:](]abcdef){100}"],
    ["(?:\\Q(\\E[\\](]abcdef){100}"],
    ["\\p{Greek}{100}"],
    ["(a{10}|b{20}){50}"],
    ["((a{10}){10}){10}"],
    ["(?P<x>a+){100}"],
  ])("is no less than half the size of %s", (pattern) => {
    const size = RE2JS.compile(pattern).programSize();
    expect(regexCost(pattern)).toBeGreaterThanOrEqual(size / 2 - 4);
  });

  it.each(["[", "[[:a]", "[\\", "\\Q", "{1", "(", "[:"])("takes linear time for %s", (part) => {
    const long = part.repeat(500_000 / part.length);
    expect(regexCost(`${long}{2}`)).toBeLessThanOrEqual(3 * long.length);
  });
});
