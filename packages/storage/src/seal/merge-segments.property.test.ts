import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { type Random, seededRandom, testRuns, testSeed } from "@skald/testkit";
import { type OpenedSegmentFile, openSegmentFile } from "../segment/read/reader.js";
import type { Segment } from "../segment/segment.js";
import { headOf, type PlainRow, type Row, rowsOf } from "../testing/seal-rows.js";
import type { DroppedRows } from "./input-cursor.js";
import { mergeSegments } from "./merge-segments.js";
import { sealSegment } from "./seal.js";

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "skald-merge-"));
});
afterAll(() => rmSync(directory, { recursive: true }));

it("merges random segments as if all their rows were sealed at once", () => {
  for (let run = 0; run < testRuns(24); run++) {
    const random = seededRandom(testSeed() * 1000 + run);
    const inputs = randomInputs(random);
    const path = join(directory, "all.parquet");
    const all = { tenant: "t", id: "all", path };
    sealSegment({ ...all, heads: inputs.map((rows) => headOf(chunks(rows, 50))) });
    const want = rowsAt(path);
    const merged = withInputs(inputs, (segments) =>
      mergeAll(segments.map((segment) => ({ segment }))),
    );
    expect(merged).toEqual(want);
  }
});

it("leaves out the rows that it is told to, and streams without others", () => {
  for (let run = 0; run < testRuns(16); run++) {
    const random = seededRandom(testSeed() * 2000 + run);
    withInputs(randomInputs(random), (segments) => {
      const left: PlainRow[] = [];
      const dropped = segments.map((segment) => dropSome(segment, random, left));
      const merged = mergeAll(segments.map((segment, i) => ({ segment, dropped: dropped[i] })));
      expect(merged).toEqual(sorted(left));
    });
  }
});

it("has no file where no row is left, and none when it is given up", () => {
  const rows = [row("a", 1, "one"), row("b", 2, "two")];
  withInputs([rows, rows], (segments) => {
    const dropped = { blocks: Uint32Array.of(0), rows: [Uint32Array.of(0, 1)] };
    expect(mergeAll(segments.map((segment) => ({ segment, dropped })))).toEqual([]);
    const path = join(directory, "given-up.parquet");
    const inputs = segments.map((segment) => ({ segment }));
    const steps = mergeSegments({ tenant: "t", id: "none", path, inputs });
    steps.return(undefined);
    expect(() => rowsAt(path)).toThrow(/gone/);
  });
});

it("holds few blocks of long streams, however they overlap", () => {
  const line = "x".repeat(8000);
  const inputs = [0, 1, 2].map((input) =>
    Array.from({ length: 400 }, (_, i) => row("a", i * 3 + input, `${line}${input}`)),
  );
  withInputs(inputs, (segments) => {
    const path = join(directory, "long.parquet");
    const options = {
      tenant: "t",
      id: "long",
      path,
      inputs: segments.map((segment) => ({ segment })),
    };
    let steps = 0;
    for (const _ of mergeSegments(options)) steps++;
    expect(steps).toBeGreaterThan(10);
    expect(rowsAt(path).map(({ time }) => time)).toEqual(Array.from({ length: 1200 }, (_, i) => i));
  });
});

function row(app: string, time: number, line: string): Row {
  return { labels: { app }, time, line };
}

/** Rows of some segments with few streams and times, so that much of them overlaps and doubles. */
function randomInputs(random: Random): Row[][] {
  const span = [3, 50, 100_000][random(3)]!;
  const long = random(4) === 0;
  const count = 1 + random(5);
  return Array.from({ length: count }, () =>
    Array.from({ length: 1 + random(long ? 400 : 80) }, () => {
      const text = random(3) === 0 ? "same" : `line ${random(20)}`;
      return {
        labels: { app: `a${random(4)}`, ...(random(2) === 0 ? { pod: `p${random(3)}` } : {}) },
        time: random(span),
        line: long ? text.padEnd(3000, "-") : text,
        metadata: randomMetadata(random),
      };
    }),
  );
}

function randomMetadata(random: Random): Record<string, string> {
  if (random(2) === 0) return {};
  const names = ["detected_level", "trace_id", "Trace_ID", `rare_${random(60)}`];
  return { [names[random(names.length)]!]: `v${random(3)}` };
}

function withInputs<T>(inputs: readonly Row[][], use: (segments: Segment[]) => T): T {
  const opened: OpenedSegmentFile[] = inputs.map((rows, i) => {
    const path = join(directory, `${i}.parquet`);
    sealSegment({ tenant: "t", id: `${i}`, path, heads: [headOf(chunks(rows, 50))] });
    return openSegmentFile({ id: `${i}`, tenant: "t", location: { kind: "file", path } });
  });
  try {
    return use(opened.map(({ segment }) => segment));
  } finally {
    for (const { close } of opened) close();
  }
}

function mergeAll(inputs: readonly { segment: Segment; dropped?: DroppedRows | undefined }[]) {
  const path = join(directory, "merged.parquet");
  const steps = mergeSegments({ tenant: "t", id: "merged", path, inputs });
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  if (step.value === undefined) return [];
  const rows = rowsAt(path);
  expect(step.value.rows).toBe(rows.length);
  return rows;
}

function rowsAt(path: string): PlainRow[] {
  const location = { kind: "file", path } as const;
  const { segment, close } = openSegmentFile({ id: "any", tenant: "t", location });
  try {
    const rows = rowsOf(segment);
    const texts = new Set(rows.map(({ text }) => text));
    expect(segment.streamCount).toBe(texts.size);
    return rows;
  } finally {
    close();
  }
}

/** Names some rows of each block, sometimes all; the others go to `left`. */
function dropSome(segment: Segment, random: Random, left: PlainRow[]): DroppedRows {
  const plain = rowsOf(segment);
  const blocks: number[] = [];
  const rows: Uint32Array[] = [];
  let at = 0;
  for (let block = 0; block < segment.blockCount; block++) {
    const { rowCount } = segment.header(block);
    const odds = random(4);
    const gone: number[] = [];
    for (let row = 0; row < rowCount; row++, at++) {
      if (random(3) < odds) gone.push(row);
      else left.push(plain[at]!);
    }
    if (gone.length === 0) continue;
    blocks.push(block);
    rows.push(Uint32Array.from(gone));
  }
  return { blocks: Uint32Array.from(blocks), rows };
}

/** By stream, then time, of equal rows the first; input by input. */
function sorted(rows: readonly PlainRow[]): PlainRow[] {
  const seen = new Set<string>();
  return rows
    .map((row, arrival) => ({ row, arrival }))
    .sort(
      (a, b) => compare(a.row.text, b.row.text) || a.row.time - b.row.time || a.arrival - b.arrival,
    )
    .map(({ row }) => row)
    .filter((row) => {
      const key = JSON.stringify(row);
      return !seen.has(key) && seen.add(key) !== undefined;
    });
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function chunks(rows: readonly Row[], size: number): Row[][] {
  const parts: Row[][] = [];
  for (let at = 0; at < rows.length; at += size) parts.push(rows.slice(at, at + size));
  return parts;
}
