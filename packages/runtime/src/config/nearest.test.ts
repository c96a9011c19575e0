import { describe, expect, it } from "@jest/globals";
import { editDistance, nearest } from "./undeclared.js";

describe("editDistance", () => {
  it.each([
    ["", "", 0],
    ["abc", "abc", 0],
    ["abc", "", 3],
    ["abc", "abd", 1],
    ["abc", "acb", 1],
    ["abc", "xabc", 1],
    ["kitten", "sitting", 3],
  ])("%j to %j is %d", (a, b, want) => {
    expect(editDistance(a, b)).toBe(want);
    expect(editDistance(b, a)).toBe(want);
  });
});

describe("nearest", () => {
  const keys = ["ingestion_rate_mb", "ingestion_burst_size_mb", "max_line_size", "wal"];
  it.each([
    ["ingestion_rate_bm", "ingestion_rate_mb"],
    ["max_linesize", "max_line_size"],
    ["wla", "wal"],
    ["xyz", undefined],
    ["completely_different", undefined],
  ])("of %s is %s", (word, want) => {
    expect(nearest(word, keys)).toBe(want);
  });
});
