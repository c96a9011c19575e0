import { afterAll, describe, expect, it } from "@jest/globals";
import { decodeOutcome } from "@skald/contracts";
import type { LeafPlan } from "@skald/logql";
import { formatLabels } from "@skald/model";
import { DayIndex, editDay } from "@skald/storage";
import { instantLeaf } from "../testing/scans.js";
import { makeDirectory, makeSegment, row, type SourceRow, testDayNs } from "../testing/sources.js";
import { countDay } from "./counting-catalog.js";

const directory = makeDirectory();
afterAll(directory.remove);

/** By id; two rows each, so many ns after midnight. */
const segments: Readonly<Record<string, readonly SourceRow[]>> = {
  one: [row("a", 10, "x"), row("a", 20, "xx")],
  // Has a row of the next too, of another stream.
  two: [row("a", 30, "x"), row("b", 40, "x")],
  three: [row("a", 50, "x"), row("b", 40, "x")],
  // Share times, but no row.
  even: [row("c", 80, "x"), row("c", 90, "x")],
  odd: [row("c", 80, "y"), row("c", 95, "x")],
  traced: [row("a", 60, "x", { trace: "1" }), row("a", 70, "x")],
};
const add = Object.entries(segments).map(([id, rows]) => ({
  ref: makeSegment(directory.path, rows, { id }),
  level: 0,
}));
const { image } = editDay({
  ...{ tenant: "t", baseNs: testDayNs, base: undefined, add, remove: [], forget: [] },
  ...{ generation: 1, writtenMs: 1 },
});
const day = new DayIndex(image);

describe("counting by the index of a day", () => {
  it.each<[string, string, number, number[], string, string]>([
    ["all streams", "sum(count_over_time({app=~`.+`}[1s]))", 100, [], "two three", "{} 8"],
    ["one stream", "count_over_time({app=`a`}[1s])", 100, [], "traced", '{app="a"} 4'],
    ["bytes of one stream, as a group", "sum(bytes_over_time({app=`a`}[1s]))", 100, [], "", "{} 7"],
    ["an edge in a segment", "sum(count_over_time({app=`a`}[1s]))", 65, [], "traced", "{} 4"],
    ["an edge between segments", "sum(count_over_time({app=`a`}[1s]))", 50, [], "", "{} 4"],
    ["segments outside", "sum(count_over_time({app=`b`}[1s]))", 39, [], "", ""],
    [
      "busy times",
      "sum(count_over_time({app=`a`}[1s]))",
      100,
      [20, 21, 45, 51],
      "one three",
      "{} 3",
    ],
    ["busy times beside rows", "sum(count_over_time({app=`a`}[1s]))", 100, [21, 30], "", "{} 6"],
    [
      "a filter",
      "sum(count_over_time({app=`a`} |= `x` [1s]))",
      100,
      [],
      "one two three traced",
      "",
    ],
    ["a stream that is not there", "sum(count_over_time({app=`z`}[1s]))", 100, [], "", ""],
  ])("%s", (_, text, to, busy, left, want) => {
    const task = { plan: instantLeaf(text, to), busy: Float64Array.from(busy) };
    const found = countDay(task, day, { check: () => {} });
    const ids = Array.from(found.left, (place) => day.segments[place]!.id);
    expect(ids.sort()).toEqual(left.split(" ").filter(Boolean).sort());
    const { partial, stats } = decodeOutcome<LeafPlan>(found.outcome);
    const values = task.plan.mode === "bytes" ? partial.value : partial.count;
    const series = partial.labels.map((labels, i) => `${formatLabels(labels)} ${values[i]}`);
    expect(series.join()).toBe(want);
    expect(stats.sourcesScanned).toBe(found.countedSegments);
    expect(stats.decompressedLines).toBe(0);
  });
});
