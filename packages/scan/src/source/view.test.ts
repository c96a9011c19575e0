import { afterAll, describe, expect, it } from "@jest/globals";
import { openSegmentFile } from "@skald/storage";
import { scanMetric } from "../scans/metric.js";
import { contextOf, leafOf, logPlan } from "../testing/scans.js";
import { makeDirectory, makeSegment, row } from "../testing/sources.js";
import { segmentSource } from "./source.js";
import { candidatesOf, rangeOf, viewOf } from "./view.js";

const appCount = 40;
const rowsPerApp = 16;
const partCount = 8;
/** Two rows fill a block. */
const filler = "x".repeat(130_000);

const directory = makeDirectory();
afterAll(directory.remove);
const rows = Array.from({ length: appCount * rowsPerApp }, (_, i) =>
  row(`app-${Math.floor(i / rowsPerApp)}`, i, `${i} ${filler}`),
);
const segment = makeSegment(directory.path, rows, { id: "s", rowsPerBlock: rowsPerApp });
const opened = openSegmentFile(segment);
afterAll(opened.close);
const source = segmentSource(opened.segment);

const parts = Array.from({ length: partCount }, (_, i) => ({
  from: i / partCount,
  to: (i + 1) / partCount,
}));

/** The blocks that each part of a count reads, or of a log query. */
function blocksOfParts(selector: string, isLog = false): number[][] {
  const plan = isLog ? logPlan(selector) : leafOf(`count_over_time(${selector} [1h])`);
  return parts.map((part) => {
    const view = viewOf(source, { ref: segment, sequence: 0, part }, plan);
    return candidatesOf(view, rangeOf(plan)).map(({ block }) => block);
  });
}

describe("parts of a segment", () => {
  it("hold all blocks of an app in one or two for log queries, which stop at their limit", () => {
    for (const app of [0, 7, 39]) {
      const found = blocksOfParts(`{app="app-${app}"}`, true).filter((blocks) => blocks.length > 0);
      expect(found.length).toBeLessThanOrEqual(2);
      expect(found.flat()).toHaveLength(rowsPerApp / 2);
    }
  });

  it.each([0, 7, 39])("hold an eighth of the blocks of app %s each", (app) => {
    const found = blocksOfParts(`{app="app-${app}"}`);
    expect(found.map(({ length }) => length)).toEqual(parts.map(() => 1));
    const [first] = found.flat() as [number];
    expect(found.flat()).toEqual(parts.map((_, i) => first + i));
  });

  it.each([
    ['{app=~"app-1|app-30"}', 2 * partCount],
    ['{app=~".+"}', appCount * partCount],
    ['{app="none"}', 0],
  ])("hold the blocks of %s once, in equal shares", (query, count) => {
    const found = blocksOfParts(query);
    expect(new Set(found.map(({ length }) => length))).toEqual(new Set([count / partCount]));
    expect(new Set(found.flat()).size).toBe(count);
  });

  it("give together what the whole gives, and count the source once", () => {
    const leaf = leafOf('sum(count_over_time({app="app-3"} |= "x" [1s]))', { from: 1e9, to: 1e9 });
    const counts = parts.map((part) => {
      const sources = [{ ref: segment, sequence: 0, part }];
      const { partial, stats } = scanMetric({ plan: leaf, sources }, () => source, contextOf());
      return { rows: partial.count[0], sources: stats.sourcesScanned };
    });
    expect(counts.map(({ rows }) => rows)).toEqual(parts.map(() => rowsPerApp / partCount));
    expect(counts.reduce((sum, { sources }) => sum + sources, 0)).toBe(1);
  });
});
