import { afterAll, describe, expect, it } from "@jest/globals";
import type { ScanSource } from "@skald/contracts";
import { type LocalRef, openSegmentFile } from "@skald/storage";
import { scanLog } from "../scans/log.js";
import { measureScan, scanMetric } from "../scans/metric.js";
import { contextOf, leafOf, logPlan, rowsOf, valuesOf } from "../testing/scans.js";
import { makeDirectory, makeHead, makeSegment, row } from "../testing/sources.js";
import { openHead, segmentSource } from "./source.js";

const directory = makeDirectory();
afterAll(directory.remove);
const context = contextOf();

/** Rows of `web`, whose traces are metadata, all in the first block; rows of `yard` with a label and metadata `user`. */
const filler = "some words of a long line that many others have as well ".repeat(90);
const rows = Array.from({ length: 120 }, (_, i) => {
  const line = `${i < 40 ? "orders" : "parcel"} ${i * 7919} ${filler}`;
  const time = i * 1000;
  return i < 40 ? row("web", time, line, { trace: `t-${i}` }) : yardRow(time, line, i);
});

function yardRow(time: number, line: string, i: number) {
  const plain = row("yard", time, line, { user: `u${i}` });
  return { ...plain, labels: { ...plain.labels, user: "label" } };
}

const segment = makeSegment(directory.path, rows, { id: "s" });
const head = makeHead(rows, { id: "h" });
const opened = openSegmentFile(segment);
afterAll(opened.close);
const source = segmentSource(opened.segment);
const open = (ref: LocalRef) => (ref.kind === "head" ? openHead(ref) : source);

const scanned = (ref: LocalRef, more: Partial<ScanSource<LocalRef>> = {}) => [
  { ref, sequence: 0, ...more },
];

describe("blocks that filters refuse", () => {
  it("are of three", () => {
    expect(opened.segment.blockCount).toBe(3);
  });

  it.each([
    ['{app=~".+"} |= "orders 7919 "', 1],
    ['{app=~".+"} |= "orders" |= "parcel"', 1],
    ['{app=~".+"} |= "orders" or "parcel"', 3],
    ['{app=~".+"} |= "no such words" or "parcel 3"', 3],
    ['{app=~".+"} |~ "(?i)ORDERS [0-9]+ some"', 1],
    ['{app=~".+"} |~ "no such|orders"', 1],
    ['{app=~".+"} |> "<_>orders <_> words<_>"', 1],
    ['{app=~".+"} != "orders"', undefined],
    ['{app=~".+"} |= "ord"', undefined],
    ['{app=~".+"} | line_format "x" |= "parcel"', undefined],
    ['{app=~".+"} | trace="t-7"', 1],
    ['{app=~".+"} | trace="none"', 0],
    ['{app=~".+"} | trace="none" or trace="t-3"', 1],
    ['{app=~".+"} | trace=~"t-1|t-2"', 1],
    ['{app=~".+"} | trace=""', undefined],
    // the label of the stream stands before metadata of the same name
    ['{app=~".+"} | user="label"', undefined],
    ['{app=~".+"} | user_extracted="u77"', undefined],
    ['{app=~".+"} | user="label" or trace="t-7"', undefined],
    ['{app=~".+"} | user="label" | trace="t-7"', 1],
    ['{app="web"} |= "carton"', 0],
  ])("%s reads %s", (query, blocks) => {
    const plan = logPlan(query, { limit: 200 });
    const { partial, stats } = scanLog({ plan, sources: scanned(segment) }, open, context);
    const want = scanLog({ plan, sources: scanned(head) }, open, context);
    expect(rowsOf(plan, [partial])).toEqual(rowsOf(plan, [want.partial]));
    const asked = query.includes('app="web"') ? 1 : 3;
    expect([stats.filteredBlocks, stats.filteredBlocks - stats.refusedBlocks]).toEqual(
      blocks === undefined ? [0, 0] : [asked, blocks],
    );
    expect([want.stats.filteredBlocks, want.stats.refusedBlocks]).toEqual([0, 0]);
  });

  it("are not read for a metric, nor measured", () => {
    const leaf = leafOf("sum(count_over_time({app=~`.+`} |= `orders` [1s]))", {
      from: 1e9,
      to: 1e9,
    });
    const { stats } = scanMetric({ plan: leaf, sources: scanned(segment) }, open, context);
    expect([stats.filteredBlocks, stats.refusedBlocks]).toEqual([3, 2]);
    expect(stats.decompressedLines).toBe(source.runs(0).rowStart[source.runs(0).count]);
    const plan = logPlan("{app=~`.+`} |= `orders`");
    for (const one of [leaf, plan]) {
      expect(measureScan({ plan: one, sources: scanned(segment) }, open, context)).toEqual({
        ...{ bytes: stats.decompressedBytes, blocks: 3, blocksToRead: 1 },
      });
    }
  });

  it.each([
    ['sum by (app) (count_over_time({app=~".+"} != "orders" [1s]))', 51],
    ['sum(count_over_time({app=~".+"} != "orders" != "no such words" [1s]))', 51],
    ['sum by (app) (bytes_over_time({app=~".+"} !~ "no such|neither" [1s]))', 0],
    ['sum(count_over_time({app=~".+"} |= "words" !> "<_>orders <_>" [1s]))', 120],
    ['sum(count_over_time({app=~".+"} != "orders" | regexp `(?P<n>[0-9]+)` | n!="1" [1s]))', 120],
    // of these it is not known which blocks lack them
    ['sum(count_over_time({app=~".+"} != "orders" != "x" [1s]))', 120],
    ['sum(count_over_time({app=~".+"} | line_format "orders" != "orders" [1s]))', 120],
    ['sum(sum_over_time({app=~".+"} != "orders" | regexp ` (?P<n>[0-9]+) ` | unwrap n [1s]))', 120],
  ])("are scanned without a filter that refuses no row of them: %s", (query, lines) => {
    const plan = leafOf(query, { from: 1e9, to: 1e9 });
    const { partial, stats } = scanMetric({ plan, sources: scanned(segment) }, open, context);
    const want = scanMetric({ plan, sources: scanned(head) }, open, context);
    expect(valuesOf(plan, [partial])).toEqual(valuesOf(plan, [want.partial]));
    expect(stats.decompressedLines).toBe(lines);
  });

  it("are not known by the tenant's label", () => {
    const plan = logPlan('{app="web"} | __tenant_id__="t"');
    const sources = scanned(segment, { tenantLabel: "t" });
    const { partial, stats } = scanLog({ plan, sources }, open, context);
    expect(rowsOf(plan, [partial]).length).toBe(40);
    expect(stats.filteredBlocks).toBe(0);
  });
});
