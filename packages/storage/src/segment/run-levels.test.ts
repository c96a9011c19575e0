import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "@jest/globals";
import { sealSegment } from "../seal/seal.js";
import { goldenPath } from "../testing/golden.js";
import { headOf, type Row } from "../testing/seal-rows.js";
import { bytesRange } from "./range-reader.js";
import { openSegment } from "./read/reader.js";
import { maxLevels } from "./run-counts.js";
import type { Segment } from "./segment.js";

const directory = mkdtempSync(join(tmpdir(), "skald-levels-"));
afterAll(() => rmSync(directory, { recursive: true }));

function seal(rows: readonly Row[]): Segment {
  const path = join(directory, "s.parquet");
  sealSegment({ id: "s", tenant: "t", path, heads: [headOf([[...rows]])] });
  return openSegment(bytesRange("s", readFileSync(path)), { id: "s", tenant: "t" });
}

const rowsOf = (app: string, count: number, levelOf: (i: number) => string): Row[] =>
  Array.from({ length: count }, (_, i) => ({
    labels: { app },
    time: i,
    line: "x".repeat(i % 3),
    metadata: levelOf(i) === "" ? {} : { detected_level: levelOf(i) },
  }));

it("counts rows and bytes of each run by level", () => {
  const levels = ["info", "", "warn"];
  const segment = seal([
    ...rowsOf("a", 60, (i) => levels[i % 3]!),
    ...rowsOf("b", 40, () => "info"),
  ]);
  expect(segment.levels(0, 0)).toEqual({
    levels: ["", "info", "warn"],
    rows: [20, 20, 20],
    lineBytes: [20, 0, 40],
  });
  expect(segment.levels(0, 1)).toMatchObject({ rows: [0, 40, 0], lineBytes: [0, 39, 0] });
});

it.each([
  ["no row has one", rowsOf("a", 60, () => "")],
  [
    "runs are short",
    rowsOf("a", 60, () => "info").map((row, i) => ({ ...row, labels: { i: `${i}` } })),
  ],
  ["there are too many", rowsOf("a", 60, (i) => `level ${i % (maxLevels + 1)}`)],
])("does not where %s", (_case, rows) => {
  expect(seal(rows).levels(0, 0)).toBeUndefined();
});

it("of the golden files is read", () => {
  const open = (name: string) =>
    openSegment(bytesRange(name, readFileSync(goldenPath(name))), {
      id: "golden",
      tenant: "golden",
    });
  expect(open("segment-v1-levels.parquet").levels(0, 0)).toEqual({
    levels: ["", "info", "error"],
    rows: [17, 17, 16],
    lineBytes: expect.any(Array),
  });
  expect(open("segment-v1-digests.parquet").levels(0, 0)).toBeUndefined();
});
