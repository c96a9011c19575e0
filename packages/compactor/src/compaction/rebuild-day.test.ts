import { describe, expect, it } from "@jest/globals";
import type { IndexedSegment } from "@skald/storage";
import { type ListedSegment, planRebuild } from "./plan.js";

const times = { minNs: 0n, maxNs: 9n };

function known(id: string): IndexedSegment {
  return { id, ...times, sizeBytes: 1, rows: 1, lineBytes: 1, level: 0 };
}

function found(id: string, replaces?: string[], modifiedMs = 0): ListedSegment {
  return { id, ...times, modifiedMs, replaces };
}

/** `before` is what the older index counts, `gone` those of it that are not in the bucket any more. */
function rebuild(before: string, gone: string, ...unknown: ListedSegment[]): string {
  const ids = before.split(" ").filter(Boolean);
  const listed = new Set([...ids, ...unknown.map(({ id }) => id)]);
  for (const id of gone.split(" ")) listed.delete(id);
  const { add, remove } = planRebuild(ids.map(known), unknown, { listed, nowMs: 7 });
  const away = remove.map(({ id, by }) => (by === undefined ? id : `${id}>${by}`));
  return `${add.join(" ")} - ${away.sort().join(" ")}`;
}

describe("planRebuild", () => {
  it.each<[string, string, string]>([
    ["nothing new", rebuild("a b", ""), " - "],
    ["young segments", rebuild("a", "", found("y")), "y - "],
    [
      "a merge",
      rebuild("a b c", "", found("merged-x", ["a", "b"])),
      "merged-x - a>merged-x b>merged-x",
    ],
    [
      "a merge of segments that were young, without an older index",
      rebuild("", "", found("a"), found("b"), found("merged-x", ["a", "b"])),
      "merged-x - a>merged-x b>merged-x",
    ],
    [
      "a merge whose inputs are deleted",
      rebuild("a b c", "a b", found("merged-x", ["a", "b"])),
      "merged-x - a>merged-x b>merged-x",
    ],
    ["segments that were dropped and deleted", rebuild("a b", "b"), " - b"],
    [
      "merges of merges",
      rebuild("a b c", "a", found("merged-y", ["merged-x", "c"]), found("merged-x", ["a", "b"])),
      "merged-y - a>merged-x b>merged-x c>merged-y merged-x>merged-y",
    ],
    [
      "two merges of one segment: the one whose inputs are deleted was first",
      rebuild("a b c", "a", found("merged-y", ["b", "c"], 9), found("merged-x", ["a", "b"])),
      "merged-x - a>merged-x b>merged-x",
    ],
  ])("%s", (_, got, want) => expect(got).toBe(want));

  it("refuses a merged segment that does not say of what it is made", () => {
    expect(() => rebuild("a", "", found("merged-x"))).toThrow("does not say");
  });
});
