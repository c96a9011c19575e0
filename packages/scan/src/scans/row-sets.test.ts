import { join } from "node:path";
import { afterAll, describe, expect, it } from "@jest/globals";
import type { SegmentRef } from "@skald/model";
import { mergeSegments, openSegmentFile } from "@skald/storage";
import { segmentSource } from "../source/source.js";
import { contextOf, countReads, leafOf, logPlan, rowsOf, valuesOf } from "../testing/scans.js";
import { makeDirectory, makeSegment, row } from "../testing/sources.js";
import { scanLog } from "./log.js";
import { measureScan, scanMetric } from "./metric.js";

const directory = makeDirectory();
afterAll(directory.remove);

const filler = "x".repeat(40_000);
const kinds = ["an error", "error timeout", "fine", "a terror of time", "Error"];
const rows = Array.from({ length: 60 }, (_, i) =>
  row(i < 30 ? "a" : "b", (i % 30) * 1_000_000, `${i} ${kinds[i % 5]} ${filler}`),
);
const plain = makeSegment(directory.path, rows, { id: "plain" });
const texts = ["error", "timeout", "absent"];
const known = mergeOne(plain, texts);
const context = contextOf();

function mergeOne(ref: SegmentRef, texts: readonly string[]) {
  const path = join(directory.path, "merged.parquet");
  const { segment, close } = openSegmentFile(ref);
  const steps = mergeSegments({ tenant: "t", id: "m", path, inputs: [{ segment }], texts });
  while (!steps.next().done);
  close();
  return { ...ref, id: "m", location: { kind: "file" as const, path } };
}

const opened = new Map([plain, known].map((ref) => [ref, openSegmentFile(ref)]));
afterAll(() => opened.forEach(({ close }) => void close()));
const spied = (ref: SegmentRef) => countReads(segmentSource(opened.get(ref)!.segment));

/** Rows 1 and 2 of the first block are deleted. */
const mask = { blocks: Uint32Array.of(0), rows: [Uint32Array.of(0, 1)] };
const sourcesOf = (ref: SegmentRef) => [{ ref, sequence: 0, mask }];

const filters: [filter: string, readsLines: boolean][] = [
  ['|= "error"', false],
  ['!= "error"', false],
  ['|= "error" != "timeout"', false],
  ['|= "error" or "timeout"', false],
  ['|~ "error|timeout"', false],
  ['!~ "timeout|error"', false],
  ['|= "absent"', false],
  ['|= "terror"', true],
  ['!= "terror"', true],
  ['|~ "error t[a-z]+"', true],
  ['!~ "error t[a-z]+"', true],
  ['|~ "(?i)error"', true],
  ['|> "<_>error<_>"', true],
  ['|= "error" |= "fine"', true],
  ['|= "fine"', true],
  ['|= "error" | line_format "{{.app}}" |= "a"', true],
];

describe.each(filters)("with row sets, %s", (filter, readsLines) => {
  it("counts as it does without", () => {
    const leaf = leafOf(`sum by (app) (count_over_time({app=~".+"} ${filter} [20ms]))`, {
      ...{ from: 25_000_000, to: 25_000_000 },
    });
    const count = (ref: SegmentRef) => {
      const { source, lines } = spied(ref);
      const plan = { plan: leaf, sources: sourcesOf(ref) };
      const { partial, stats } = scanMetric(plan, () => source, context);
      const { bytes } = measureScan(plan, () => source, context);
      return { values: valuesOf(leaf, [partial]), lines, stats, bytes };
    };
    const got = count(known);
    expect(got.values).toEqual(count(plain).values);
    if (readsLines) return;
    expect(got).toMatchObject({ lines: [], bytes: 0, stats: { decompressedBytes: 0 } });
  });

  it("finds the same lines", () => {
    const plan = logPlan(`{app=~".+"} ${filter}`);
    const find = (ref: SegmentRef) => {
      const { source } = spied(ref);
      const { partial } = scanLog({ plan, sources: sourcesOf(ref) }, () => source, context);
      return rowsOf(plan, [partial]);
    };
    expect(find(known)).toEqual(find(plain));
  });
});

it("reads no line of a block where the rows of a word are all masked", () => {
  const { source, lines, times } = spied(known);
  const plan = logPlan('{app=~".+"} |= "timeout"');
  const all = Array.from({ length: source.blockCount }, (_, block) => block);
  const rows = all.map((block) => {
    const { count = 0 } = source.facts(block)?.rowsWith(1) ?? {};
    return count === 0 ? new Uint32Array(0) : Uint32Array.from({ length: 60 }, (_, row) => row);
  });
  const sources = [{ ref: known, sequence: 0, mask: { blocks: Uint32Array.from(all), rows } }];
  expect(scanLog({ plan, sources }, () => source, context).partial.rowCount).toBe(0);
  expect([...lines, ...times]).toEqual([]);
});
