import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "@jest/globals";
import { sealSegment } from "../seal/seal.js";
import { goldenDigestedRows, goldenPath } from "../testing/golden.js";
import { headOf, type Row } from "../testing/seal-rows.js";
import { bytesRange } from "./range-reader.js";
import { openSegment } from "./read/reader.js";
import type { Segment } from "./segment.js";

const directory = mkdtempSync(join(tmpdir(), "skald-marks-"));
afterAll(() => rmSync(directory, { recursive: true }));

function seal(rows: readonly Row[], digests = false): Segment {
  const path = join(directory, "s.parquet");
  sealSegment({ id: "s", tenant: "t", path, heads: [headOf([[...rows]])], digests });
  return openSegment(bytesRange("s", readFileSync(path)), { id: "s", tenant: "t" });
}

const rowsOf = (count: number, line = "line") =>
  Array.from(
    { length: count },
    (_, i): Row => ({
      ...{ labels: { app: i % 2 ? "a" : "b" }, time: i * 1000, line: `${line} ${i}` },
      metadata: i % 3 ? { trace: `t${i}` } : {},
    }),
  );

it("marks each row of a small segment, and none of a larger one", () => {
  expect(new Set(seal(rowsOf(1024)).marks(0)).size).toBe(1024);
  expect(seal(rowsOf(1025)).marks(0)).toBeUndefined();
  expect(seal(rowsOf(1024), true).marks(0)).toHaveLength(1024);
});

it("goes on from block to block", () => {
  const long = "x".repeat(150_000);
  const whole = seal(rowsOf(6, long));
  expect(whole.blockCount).toBeGreaterThan(2);
  const marks = Array.from({ length: whole.blockCount }, (_, block) => [...whole.marks(block)!]);
  expect(marks.map(({ length }) => length)).toEqual(
    marks.map((_, block) => whole.header(block).rowCount),
  );
  const odd = seal(rowsOf(6, long).filter(({ labels }) => labels.app === "a"));
  const own = Array.from({ length: odd.blockCount }, (_, block) => [...odd.marks(block)!]);
  expect(marks.flat().slice(0, 3)).toEqual(own.flat());
});

it("marks equal rows alike wherever they are, and others differently", () => {
  const [first, ...others] = rowsOf(200);
  const alone = seal([first!]).marks(0)![0]!;
  expect([...seal([first!, ...others]).marks(0)!].filter((mark) => mark === alone)).toHaveLength(1);
  for (const other of [{ time: 1 }, { line: "other" }, { metadata: { trace: "x" } }]) {
    expect([...seal([{ ...first!, ...other }]).marks(0)!]).not.toContain(alone);
  }
});

it("of the golden files is read", () => {
  const open = (name: string) =>
    openSegment(bytesRange(name, readFileSync(goldenPath(name))), {
      id: "golden",
      tenant: "golden",
    });
  expect(open("segment-v1-marks.parquet").marks(0)).toEqual(seal(goldenDigestedRows()).marks(0));
  expect(open("segment-v1-levels.parquet").marks(0)).toBeUndefined();
});
