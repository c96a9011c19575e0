import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "@jest/globals";
import { sealSegment } from "../seal/seal.js";
import { goldenPath } from "../testing/golden.js";
import { headOf, type Row } from "../testing/seal-rows.js";
import { bytesRange } from "./range-reader.js";
import { openSegment } from "./read/reader.js";
import type { Segment } from "./segment.js";

const directory = mkdtempSync(join(tmpdir(), "skald-metadata-"));
afterAll(() => rmSync(directory, { recursive: true }));

function seal(rows: readonly Row[]): Segment {
  const path = join(directory, "s.parquet");
  sealSegment({ id: "s", tenant: "t", path, heads: [headOf([[...rows]])] });
  return openSegment(bytesRange("s", readFileSync(path)), { id: "s", tenant: "t" });
}

const rowOf = (app: string, time: number, metadata: Record<string, string>): Row => ({
  labels: { app },
  ...{ time, line: "x", metadata },
});
/** More names than a file has columns for. */
const names = Array.from({ length: 40 }, (_, i) => `name${10 + i}`);

describe("bytes of structured metadata", () => {
  it("are those of names and values, each pair in full", () => {
    const segment = seal([
      rowOf("a", 0, { k: "v", user: "böb" }),
      rowOf("a", 1, { k: "v", detected_level: "info" }),
      rowOf("a", 2, {}),
      rowOf("b", 3, Object.fromEntries(names.map((name) => [name, "1"]))),
      rowOf("c", 4, {}),
    ]);
    // The runs of a, b and c: k=v twice, user=böb, detected_level=info; forty pairs of seven bytes.
    const [a, b] = [2 + 2 + 8 + 18, 40 * 7];
    expect([...(segment.metadataBytes(0) ?? [])]).toEqual([a, b, 0]);
  });

  it("are not counted where no row has any, nor in files of before", () => {
    expect(seal([rowOf("a", 0, {})]).metadataBytes(0)).toBeUndefined();
    const golden = readFileSync(goldenPath("segment-v1.parquet"));
    const identity = { id: "golden", tenant: "golden" };
    expect(openSegment(bytesRange("s", golden), identity).metadataBytes(0)).toBeUndefined();
  });
});
