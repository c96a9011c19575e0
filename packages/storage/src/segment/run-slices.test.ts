import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "@jest/globals";
import { sliceStepsNs, type TimeSlices } from "@skald/model";
import { sealSegment } from "../seal/seal.js";
import { goldenPath } from "../testing/golden.js";
import { headOf, type Row } from "../testing/seal-rows.js";
import { bytesRange } from "./range-reader.js";
import { openSegment } from "./read/reader.js";
import type { Segment } from "./segment.js";
import { verifySegment } from "./verify/verify-segment.js";

const directory = mkdtempSync(join(tmpdir(), "skald-slices-"));
afterAll(() => rmSync(directory, { recursive: true }));
const path = join(directory, "s.parquet");
const [shortNs, longNs] = sliceStepsNs;

function seal(rows: readonly Row[]): Segment {
  sealSegment({ id: "s", tenant: "t", path, heads: [headOf([[...rows]])] });
  return openSegment(bytesRange("s", readFileSync(path)), { id: "s", tenant: "t" });
}

/** Rows from a time on: their number and distance in ns. */
const rowsOf = (app: string, count: number, from: number, apart: number): Row[] =>
  Array.from({ length: count }, (_, i) => ({
    labels: { app },
    time: from + i * apart,
    line: "x".repeat(i % 3),
  }));

const listed = (slices: TimeSlices | undefined) =>
  slices && {
    ...{ stepNs: slices.stepNs, first: slices.first },
    rows: [...slices.rows.subarray(slices.from, slices.to)],
    lineBytes: [...slices.lineBytes.subarray(slices.from, slices.to)],
  };

it("counts the rows of each run behind the begin of a slice up to its end", () => {
  const segment = seal([
    ...rowsOf("a", 30, shortNs, shortNs / 10),
    ...rowsOf("b", 30, 3 * shortNs + 1, 1),
  ]);
  expect(listed(segment.slices(0, 0))).toEqual({
    ...{ stepNs: shortNs, first: 0 },
    ...{ rows: [1, 10, 10, 9], lineBytes: [0, 10, 11, 9] },
  });
  expect(listed(segment.slices(0, 1))).toEqual({
    ...{ stepNs: shortNs, first: 3, rows: [30], lineBytes: [30] },
  });
  const check = verifySegment(bytesRange("s", readFileSync(path)));
  let step = check.next();
  while (!step.done) step = check.next();
  expect(step.value.damage).toEqual([]);
});

it("takes longer slices where rows are few", () => {
  const segment = seal(rowsOf("a", 100, 1, longNs / 10));
  expect(listed(segment.slices(0, 0))).toMatchObject({
    ...{ stepNs: longNs, first: 0, rows: Array.from({ length: 10 }, () => 10) },
  });
});

it.each([
  ["rows are fewer still", rowsOf("a", 100, 1, longNs)],
  ["each run is in one", rowsOf("a", 100, 1, 1)],
])("does not where %s", (_case, rows) => {
  expect(seal(rows).slices(0, 0)).toBeUndefined();
});

it("has none of files that were written before", () => {
  const golden = readFileSync(goldenPath("segment-v1-levels.parquet"));
  const segment = openSegment(bytesRange("golden", golden), { id: "golden", tenant: "golden" });
  expect(segment.slices(0, 0)).toBeUndefined();
});
