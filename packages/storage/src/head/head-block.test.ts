import { readFileSync } from "node:fs";
import { describe, expect, it } from "@jest/globals";
import { type Batch, type Block, levelNames } from "@skald/model";
import { makeBatch } from "@skald/testkit";
import { goldenBaseNs, goldenHead, goldenHeadRows, goldenPath } from "../testing/golden.js";
import { plainRow, rowsOfBlock } from "../testing/seal-rows.js";
import { HeadBlock, openHeadBlock } from "./head-block.js";
import type { HeadBlockRef } from "./head-view.js";

const day = 20_000n * 86_400_000_000_000n;
const roomy = { rows: 100, runs: 10, pairs: 50, lineBytes: 1000, valueBytes: 500 };

const batch = makeBatch([
  {
    labels: { app: "a" },
    rows: [
      { ns: day + 5n, line: "first", metadata: { trace: "t1", user: "u" }, level: 4 },
      { ns: day + 9n, line: "" },
      { ns: day + 7n, line: "dritte Zeile ü", metadata: { trace: "t2" }, level: 6 },
    ],
  },
  { labels: { app: "b" }, rows: [{ ns: day + 86_399_999_999_999n, line: "last" }] },
]);

function linesOf(block: Block): string[] {
  const { bytes, offsets } = block.lines();
  return [...Array(block.rowCount).keys()].map((row) =>
    Buffer.from(bytes.slice(offsets[row], offsets[row + 1])).toString(),
  );
}

function metadataOf(block: Block, name: string): string[] | undefined {
  const column = block.metadata(name);
  if (column === undefined) return undefined;
  return [...Array(block.rowCount).keys()].map((row) => {
    const isCoded = column.kind === "dictionary";
    const { bytes, offsets } = isCoded ? column.dictionary : column;
    const at = isCoded ? column.codes[row]! : row;
    return Buffer.from(bytes.slice(offsets[at], offsets[at + 1])).toString();
  });
}

function filled(source: Batch = batch): HeadBlock {
  const head = new HeadBlock(day, roomy);
  for (const [number, stream] of source.streams.entries()) {
    expect(head.append(source, stream.rowStart, stream.rowEnd, number + 7)).toBe(
      stream.rowEnd - stream.rowStart,
    );
  }
  return head;
}

function published(head: HeadBlock): HeadBlockRef {
  head.publish(head.rowCount);
  return head.view();
}

describe("HeadBlock", () => {
  it("reads back what was appended, in order of arrival", () => {
    const block = openHeadBlock(published(filled()));
    expect(block.rowCount).toBe(4);
    expect([...block.timestamps()]).toEqual([5, 9, 7, 86_399_999_999_999]);
    expect(linesOf(block)).toEqual(["first", "", "dritte Zeile ü", "last"]);
    expect(block.lines().bytes.length).toBeGreaterThanOrEqual(5 + 15 + 4 + 64);
    expect([...block.runs.stream]).toEqual([7, 8]);
    expect([...block.runs.rowStart]).toEqual([0, 3, 4]);
    expect([...block.runs.minTime]).toEqual([5, 86_399_999_999_999]);
    expect([...block.runs.maxTime]).toEqual([9, 86_399_999_999_999]);
    expect([...block.runs.lineBytes]).toEqual([20, 4]);
  });

  it("builds a column per metadata name", () => {
    const block = openHeadBlock(published(filled()));
    expect(block.metadataNames()).toEqual(["trace", "user", "detected_level"]);
    expect(metadataOf(block, "trace")).toEqual(["t1", "", "t2", ""]);
    expect(metadataOf(block, "user")).toEqual(["u", "", "", ""]);
    expect(metadataOf(block, "detected_level")).toEqual([levelNames[4], "", levelNames[6], ""]);
    expect(metadataOf(block, "absent")).toBeUndefined();
  });

  it("takes levels outside the table from the metadata", () => {
    const rows = [
      { ns: day, line: "x", metadata: { detected_level: "notice" }, level: 255 },
      { ns: day, line: "y", level: 5 },
      { ns: day, line: "z", metadata: { detected_level: "notice" }, level: 255 },
    ];
    const block = openHeadBlock(published(filled(makeBatch([{ labels: { a: "1" }, rows }]))));
    expect(metadataOf(block, "detected_level")).toEqual(["notice", "warn", "notice"]);
    expect(block.metadata("detected_level")?.kind).toBe("dictionary");
  });

  it("gives up the dictionary when there are more than 256 levels", () => {
    const rows = Array.from({ length: 300 }, (_, i) => ({
      ns: day,
      line: "",
      ...(i === 0 ? { level: 3 } : { metadata: { detected_level: `own${i}` }, level: 255 }),
    }));
    const head = new HeadBlock(day, { ...roomy, rows: 300, pairs: 300, valueBytes: 3000 });
    expect(head.append(makeBatch([{ labels: {}, rows }]), 0, 300, 1)).toBe(300);
    const levels = metadataOf(openHeadBlock(published(head)), "detected_level") as string[];
    expect([levels[0], levels[1], levels[299]]).toEqual(["debug", "own1", "own299"]);
  });

  it("shows a view only what was published when it was taken", () => {
    const head = filled();
    expect(head.view().rowCount).toBe(0);
    head.publish(2);
    const early = head.view();
    head.append(batch, 3, 4, 8);
    head.publish(5);
    const block = openHeadBlock(early);
    expect(linesOf(block)).toEqual(["first", ""]);
    expect([...block.runs.rowStart]).toEqual([0, 2]);
    expect([...block.runs.maxTime]).toEqual([9]);
    expect([...block.runs.lineBytes]).toEqual([5]);
    expect(metadataOf(block, "trace")).toEqual(["t1", ""]);
    const late = openHeadBlock(head.view());
    expect(late.rowCount).toBe(5);
    expect([...late.runs.rowStart]).toEqual([0, 3, 5]);
  });

  it("forgets rows that were not published", () => {
    const head = filled();
    head.publish(2);
    head.truncate(2);
    expect([head.rowCount, head.runCount, head.lineBytes]).toEqual([2, 1, 5]);
    head.append(batch, 3, 4, 9);
    const block = openHeadBlock(published(head));
    expect(linesOf(block)).toEqual(["first", "", "last"]);
    expect([...block.runs.stream]).toEqual([7, 9]);
    expect([...block.runs.maxTime]).toEqual([9, 86_399_999_999_999]);
  });

  it.each([
    ["rows", { ...roomy, rows: 2 }, 2],
    ["line bytes", { ...roomy, lineBytes: 19 }, 2],
    ["pairs", { ...roomy, pairs: 2 }, 2],
    ["value bytes", { ...roomy, valueBytes: 4 }, 2],
    ["value bytes of the first row", { ...roomy, valueBytes: 2 }, 0],
    ["runs", { ...roomy, runs: 0 }, 0],
  ])("takes the rows that fit: %s", (_, capacity, want) => {
    const head = new HeadBlock(day, capacity);
    expect(head.append(batch, 0, 3, 1)).toBe(want);
    expect(linesOf(openHeadBlock(published(head)))).toEqual(["first", ""].slice(0, want));
  });

  it("works in memory that was used before", () => {
    const memory = new SharedArrayBuffer(8192);
    new Uint8Array(memory).fill(0xff);
    const head = new HeadBlock(day, roomy, memory);
    head.append(batch, 0, 3, 1);
    const block = openHeadBlock(published(head));
    expect(linesOf(block)).toEqual(["first", "", "dritte Zeile ü"]);
    expect(metadataOf(block, "user")).toEqual(["u", "", ""]);
  });

  it("refuses memory that is no head block", () => {
    const ref = { ...filled().view(), memory: new SharedArrayBuffer(64) };
    expect(() => openHeadBlock(ref)).toThrow("head block layout 0 is not known; expected 1");
  });
});

describe("the golden file", () => {
  const golden = readFileSync(goldenPath("head-v1.bin"));

  it("of version 1 is read", () => {
    const memory = new SharedArrayBuffer(golden.length);
    new Uint8Array(memory).set(golden);
    const counts = JSON.parse(readFileSync(goldenPath("head-v1.json"), "utf8"));
    const block = openHeadBlock({ ...counts, baseNs: BigInt(counts.baseNs), memory });
    expect(block.baseNs).toBe(goldenBaseNs);
    const texts: Record<number, string> = { 7: '{app="api"}', 3: '{app="web"}' };
    expect(rowsOfBlock(block, (stream) => texts[stream]!)).toEqual(
      goldenHeadRows.slice(0, 3).map(plainRow),
    );
  });

  it("is what is made now", () => {
    expect(Buffer.compare(new Uint8Array(goldenHead().memory), golden)).toBe(0);
  });
});

it("has the layout of docs/formats/head.md", () => {
  const rows = [
    { ns: day + 5n, line: "ab", metadata: { k: "v" }, level: 4 },
    { ns: day + 9n, line: "c" },
  ];
  const capacity = { rows: 2, runs: 1, pairs: 1, lineBytes: 3, valueBytes: 1 };
  const head = new HeadBlock(day, capacity);
  head.append(makeBatch([{ labels: { a: "1" }, rows }]), 0, 2, 7);
  const bytes = Buffer.from(head.memory);
  expect(bytes.length).toBe(0xd1 + 1 + 64);
  expect(bytes.subarray(0, 0x18).toString("hex")).toBe(
    "010000000200000001000000010000000300000001000000",
  );
  expect(bytes.subarray(0x40, 0x60).toString("hex")).toBe(
    "00000000000014400000000000002240".repeat(2),
  );
  expect(bytes.subarray(0x60, 0x91).toString("hex")).toBe(
    "000000000200000003000000000000000100000001000000000000000000000001000000" +
      "07000000000000000400616263",
  );
  expect(bytes[0xd1]).toBe(0x76);
});
