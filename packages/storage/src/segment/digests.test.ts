import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "@jest/globals";
import { mergeSegments } from "../seal/merge-segments.js";
import { sealSegment } from "../seal/seal.js";
import { goldenDigestedRows, goldenPath } from "../testing/golden.js";
import { headOf, type Row } from "../testing/seal-rows.js";
import { bytesRange } from "./range-reader.js";
import { openSegment } from "./read/reader.js";
import { hashBlockRows } from "./row-hash.js";
import type { Segment } from "./segment.js";

const directory = mkdtempSync(join(tmpdir(), "skald-digest-"));
afterAll(() => rmSync(directory, { recursive: true }));

function seal(rows: readonly Row[], digests = true): Segment {
  const path = join(directory, "s.parquet");
  sealSegment({ id: "s", tenant: "t", path, heads: [headOf([[...rows]])], digests });
  return openSegment(bytesRange("s", readFileSync(path)), { id: "s", tenant: "t" });
}

const second = 1_000_000_000;
const rowOf = (i: number, app = "a"): Row => ({
  labels: { app },
  time: i * second,
  line: `line ${i}`,
  metadata: i % 2 ? { trace: `t${i}` } : {},
});
const rows = Array.from({ length: 120 }, (_, i) => rowOf(i));

it("covers each minute of a stream that has rows", () => {
  const {
    minutes,
    rows: counts,
    sums,
  } = seal(rows.filter((_, i) => i < 60 || i > 100)).digests(0)!;
  expect([[...minutes], [...counts], sums.length]).toEqual([[0, 1], [60, 19], 4]);
});

it("is left out where nobody asks for it, and by a merge of such segments", () => {
  const without = seal(rows, false);
  expect(without.digests(0)).toBeUndefined();
  const has = [[without], [without, seal(rows)]].map((segments) => {
    const path = join(directory, "m.parquet");
    const inputs = segments.map((segment) => ({ segment }));
    const steps = mergeSegments({ tenant: "t", id: "m", path, inputs });
    while (steps.next().done !== true);
    const merged = openSegment(bytesRange("m", readFileSync(path)), { id: "m", tenant: "t" });
    return merged.digests(0) !== undefined;
  });
  expect(has).toEqual([false, true]);
});

it("is the sum of the hashes of the rows, wherever these lie", () => {
  const segment = seal(rows);
  const block = segment.block(0);
  const { low, high } = hashBlockRows({
    rowCount: 60,
    timestamps: block.timestamps(),
    lines: block.lines(),
    metadata: [["trace", block.metadata("trace")!]],
  });
  const sum = (half: Uint32Array) => half.reduce((total, one) => (total + one) >>> 0, 0);
  expect([...segment.digests(0)!.sums.subarray(0, 2)]).toEqual([sum(low), sum(high)]);
});

it("does not depend on the order of rows, on other streams, nor on where metadata is kept", () => {
  // So many names that those of the rows are in the map.
  const names = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`n${i}`, "x"]));
  const others = Array.from({ length: 200 }, (_, i) => ({ ...rowOf(i, "b"), metadata: names }));
  const plain = seal(rows).digests(0)!;
  const mixed = seal([...others, ...[...rows].reverse()]).digests(0)!;
  expect([...mixed.sums]).toEqual([...plain.sums]);
});

it("is left out where rows are few", () => {
  const few = Array.from({ length: 20 }, (_, i) => ({ ...rowOf(i), time: i * 60 * second }));
  const segment = seal([...few, ...rows.map((row) => ({ ...row, labels: { app: "b" } }))]);
  expect(segment.digests(0)).toBeUndefined();
  expect(segment.digests(1)?.minutes).toHaveLength(2);
  expect(seal(few).digests(0)).toBeUndefined();
});

it("of the golden files is read", () => {
  const open = (name: string) =>
    openSegment(bytesRange(name, readFileSync(goldenPath(name))), {
      id: "golden",
      tenant: "golden",
    });
  const golden = open("segment-v1-digests.parquet");
  const fresh = seal(goldenDigestedRows());
  expect(golden.digests(0)).toEqual(fresh.digests(0));
  expect([[...golden.digests(0)!.rows], golden.digests(1)]).toEqual([[30, 20], undefined]);
  expect(open("segment-v1-filters.parquet").digests(0)).toBeUndefined();
});
