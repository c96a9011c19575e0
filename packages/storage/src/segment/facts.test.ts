import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { afterAll, describe, expect, it } from "@jest/globals";
import { seededRandom, testSeed } from "@skald/testkit";
import { mergeSegments } from "../seal/merge-segments.js";
import { sealSegment } from "../seal/seal.js";
import { goldenFilteredRows, goldenPath } from "../testing/golden.js";
import { headOf, type Row, rowsOf } from "../testing/seal-rows.js";
import { zstd, zstdContentBytes } from "../zstd.js";
import { maxSetTexts } from "./facts.js";
import { trailerBytes, trailerFromEnd } from "./layout.js";
import { bytesRange } from "./range-reader.js";
import { openSegment } from "./read/reader.js";
import type { Segment } from "./segment.js";
import { describeSegment } from "./verify/describe-segment.js";
import { verifySegment } from "./verify/verify-segment.js";

const directory = mkdtempSync(join(tmpdir(), "skald-facts-"));
afterAll(() => rmSync(directory, { recursive: true }));

const identity = { id: "s", tenant: "t" };
const path = join(directory, "merged.parquet");

function merge(parts: readonly (readonly Row[])[], texts: readonly string[]): Segment {
  const inputs = parts.map((rows, i) => {
    const own = join(directory, `${i}.parquet`);
    sealSegment({ ...identity, path: own, heads: [headOf([[...rows]])] });
    return { segment: openSegment(bytesRange(own, readFileSync(own)), identity) };
  });
  const steps = mergeSegments({ ...identity, path, inputs, texts });
  while (!steps.next().done);
  return openAt(path);
}

function openAt(file: string, id = identity): Segment {
  return openSegment(bytesRange(file, readFileSync(file)), id);
}

function rows(count: number, lineOf: (i: number) => string | Uint8Array): Row[] {
  return Array.from({ length: count }, (_, i) => ({
    labels: { app: i % 7 === 0 ? "a" : "b" },
    time: i,
    line: lineOf(i),
  }));
}

/** By text, the numbers of the rows that have it, block by block. */
function setsOf(segment: Segment): Record<string, number[][]> {
  const sets: Record<string, number[][]> = {};
  for (let block = 0; block < segment.blockCount; block++) {
    const facts = segment.facts(block);
    for (const [i, text] of facts?.texts.entries() ?? []) {
      const { words, count } = facts!.rowsWith(i);
      const all = Array.from({ length: words.length * 32 }, (_, row) => row);
      const found = all.filter((row) => (words[row >> 5]! >>> (row & 31)) & 1);
      expect(found).toHaveLength(count);
      const key = Buffer.from(text).toString();
      sets[key] = [...(sets[key] ?? []), found];
    }
  }
  return sets;
}

/** The same from the lines. */
function searched(segment: Segment, texts: readonly string[]): Record<string, number[][]> {
  const blocks = Array.from({ length: segment.blockCount }, (_, b) => {
    const { bytes, offsets } = segment.block(b).lines();
    return Array.from({ length: offsets.length - 1 }, (_, row) =>
      Buffer.from(bytes.subarray(offsets[row], offsets[row + 1])),
    );
  });
  const rowsWith = (lines: Buffer[], text: string) =>
    lines.flatMap((line, row) => (line.includes(text) ? [row] : []));
  return Object.fromEntries(
    texts.map((text) => [text, blocks.map((lines) => rowsWith(lines, text))]),
  );
}

describe("row sets", () => {
  const texts = ["error", "x", "ü", "nowhere", "\n"];

  it("of random lines are those of a search, whatever the lines and blocks", () => {
    const random = seededRandom(testSeed());
    const words = ["error", "Error", "x", "ü", "\n", "", "\xc3", "terror", "y".repeat(9000)];
    const lineOf = () => {
      const line = Array.from({ length: random(4) }, () => words[random(9)]!).join(" ");
      return random(9) === 0 ? Buffer.from(line, "latin1") : line;
    };
    for (const count of [1, 31, 32, 33, 700]) {
      const segment = merge([rows(count, lineOf), rows(count, lineOf)], texts);
      expect(setsOf(segment)).toEqual(searched(segment, texts));
    }
  });

  it("list the rows without a text where those are fewer", () => {
    const segment = merge([rows(5000, (i) => (i % 50 ? `error ${i}` : "fine"))], ["error"]);
    expect(setsOf(segment)).toEqual(searched(segment, ["error"]));
    expect(describeSegment(bytesRange(path, readFileSync(path))).rowSets).toEqual({ error: 4900 });
  });

  it("have no rows that a merge drops, and count a doubled row once", () => {
    const own = rows(40, (i) => `error ${i}`);
    const segment = merge([own, own], ["error"]);
    expect(rowsOf(segment)).toHaveLength(40);
    expect(setsOf(segment).error!.flat()).toHaveLength(40);
  });

  it("are of the texts that come first, each once, and none is empty", () => {
    const asked = ["b", "", "b", "\ud800", ...Array.from({ length: 30 }, (_, i) => `text ${i}`)];
    const sets = setsOf(merge([rows(9, () => "b")], asked));
    expect(Object.keys(sets)).toHaveLength(maxSetTexts);
    expect(Object.keys(sets).slice(0, 3)).toEqual(["b", "text 0", "text 1"]);
  });

  it("take no more than a small part of the lines, those asked for most first", () => {
    const random = seededRandom(1);
    const letters = () => String.fromCharCode(97 + random(3), 97 + random(3));
    const many = rows(200_000, letters);
    const segment = merge([many], ["ab", ...Array.from("abc"), "zz"]);
    const { sections } = describeSegment(bytesRange(path, readFileSync(path)));
    const bytes = sections.find(({ name }) => name === "setRows")?.bytes ?? 0;
    expect(bytes).toBeLessThan(2 * 1024);
    expect(Object.keys(setsOf(segment))).toEqual(["zz"]);
  });

  it("are absent from segments that were not merged, or merged for no text", () => {
    const sealed = join(directory, "sealed.parquet");
    sealSegment({ ...identity, path: sealed, heads: [headOf([rows(9, () => "error")])] });
    expect(openAt(sealed).facts(0)).toBeUndefined();
    expect(merge([rows(9, () => "error")], []).facts(0)).toBeUndefined();
  });

  it("of the golden file are read, and older files have none", () => {
    const golden = { id: "golden", tenant: "golden" };
    const segment = openAt(goldenPath("segment-v1-sets.parquet"), golden);
    expect(rowsOf(segment)).toHaveLength(goldenFilteredRows().length);
    const sets = setsOf(segment);
    expect(sets).toEqual(searched(segment, ["GET", "took 1", "absent", "items/4"]));
    expect(openAt(goldenPath("segment-v1-filters.parquet"), golden).facts(0)).toBeUndefined();
  });
});

/** The file with another text of the same length in its index, and the trailer that this needs. */
function withIndexText(bytes: Buffer, text: string, other: string): Buffer {
  const trailerAt = bytes.length - trailerFromEnd(bytes, "s");
  const offset = Number(bytes.readBigUInt64LE(trailerAt));
  const stored = bytes.subarray(offset, trailerAt);
  const raw = Buffer.from(zstd.decompress(stored, zstdContentBytes(stored)!));
  raw.write(other, raw.indexOf(text), "latin1");
  const index = zstd.compress(raw, 1);
  const trailer = Buffer.from(bytes.subarray(trailerAt, trailerAt + trailerBytes));
  trailer.writeUInt32LE(index.byteLength, 8);
  trailer.writeUInt32LE(crc32(index), 12);
  const end = bytes.subarray(trailerAt + trailerBytes);
  return Buffer.concat([bytes.subarray(0, offset), index, trailer, end]);
}

describe("verify", () => {
  const check = (bytes: Uint8Array) => {
    const steps = verifySegment(bytesRange("s", bytes));
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value.damage;
    }
  };

  it("holds row sets against the lines", () => {
    merge([rows(300, (i) => (i % 3 ? "error" : "fine"))], ["error"]);
    const bytes = readFileSync(path);
    expect(check(bytes)).toEqual([]);
    const damage = check(withIndexText(bytes, "error", "fines"));
    expect(damage.map(({ message }) => message)).toContain(
      'the rows of "fines" are not those of its lines',
    );
  });
});
