import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { openSegmentFile } from "@skald/storage";
import { makeDirectory, makeHead, makeSegment, row } from "../testing/sources.js";
import { BlockReader, ScanMemory } from "./block-reader.js";
import { openHead, type Source, segmentSource } from "./source.js";

const directory = makeDirectory();
const lineBytes = 85_000;
const blockCount = 40;
const lines = { lines: true, timestamps: false, metadata: [] };
let source: Source;
let close: () => void;

beforeAll(() => {
  // Three lines fill a block.
  const rows = Array.from({ length: blockCount * 3 }, (_, i) =>
    row("a", i, `${i} `.padEnd(lineBytes, `x${i}`)),
  );
  const opened = openSegmentFile(makeSegment(directory.path, rows, { id: "many" }));
  source = segmentSource(opened.segment);
  close = opened.close;
});
afterAll(() => {
  close();
  directory.remove();
});

/** The source with the ranges of its reads written down. */
function watched(): { source: Source; reads: [number, number][] } {
  const reads: [number, number][] = [];
  return {
    reads,
    source: {
      ...source,
      readPages: (blocks, columns, memory) => {
        reads.push([blocks.from, blocks.to]);
        return source.readPages(blocks, columns, memory);
      },
    },
  };
}

function firstBytes(block: ReturnType<BlockReader["read"]>): string {
  return Buffer.from(block.lines().bytes.subarray(0, 6)).toString();
}

const wanted = (...blocks: number[]) => blocks.map((block) => ({ block }));
const all = Array.from({ length: blockCount }, (_, block) => block);

describe("BlockReader", () => {
  it("has the blocks that the tests need", () => {
    expect(source.blockCount).toBe(blockCount);
  });

  it("reads ahead twice as far each time, and each block once", () => {
    const { source: spied, reads } = watched();
    const reader = new BlockReader(spied, lines, wanted(...all));
    for (const block of all)
      expect(firstBytes(reader.read(block))).toBe(`${block * 3} `.padEnd(6, `x${block * 3}`));
    expect(reads).toEqual([
      [0, 1],
      [1, 3],
      [3, 7],
      [7, 15],
      [15, 31],
      [31, 40],
    ]);
  });

  it("reads neighbours on both sides, and none that the scan does not want", () => {
    const { source: spied, reads } = watched();
    const reader = new BlockReader(spied, lines, wanted(2, 5, 6, 7, 20));
    for (const block of [20, 6, 7, 5, 2]) reader.read(block);
    expect(reads).toEqual([
      [20, 21],
      [6, 8],
      [5, 6],
      [2, 3],
    ]);
  });

  it("gives the same blocks in used memory, in any order", () => {
    const memory = new ScanMemory();
    // What is left of earlier scans must not show.
    const taken = Array.from({ length: 8 }, () => memory.take(400_000).fill(0xff));
    for (const buffer of taken) memory.give(buffer);
    const order = all.map((block) => (block * 17) % blockCount);
    const reader = new BlockReader(source, lines, wanted(...all), memory);
    for (const block of order) {
      const { bytes, offsets } = reader.read(block).lines();
      const plain = source.block(block).lines();
      expect(offsets).toEqual(plain.offsets);
      expect(Buffer.compare(bytes, plain.bytes)).toBe(0);
    }
    reader.close();
  });

  it("takes no new memory once it has run, and gives all back when closed early", () => {
    const memory = new ScanMemory();
    for (const stopAfter of [blockCount, 5, 1]) {
      const reader = new BlockReader(source, lines, wanted(...all), memory);
      for (const block of all.slice(0, stopAfter)) reader.read(block).lines();
      reader.close();
      expect(memory.freeBytes).toBeGreaterThan(0);
    }
    const before = memory.freeBytes;
    const reader = new BlockReader(source, lines, wanted(...all), memory);
    for (const block of all) reader.read(block).lines();
    reader.close();
    expect(memory.freeBytes).toBe(before);
  });

  it("reads heads, which are in memory", () => {
    const head = openHead(
      makeHead([row("a", 1, "x"), row("a", 2, "y")], { id: "h", rowsPerBlock: 1 }),
    );
    const reader = new BlockReader(head, lines, wanted(0, 1), new ScanMemory());
    expect(
      [1, 0].map((block) =>
        Buffer.from(reader.read(block).lines().bytes.subarray(0, 1)).toString(),
      ),
    ).toEqual(["y", "x"]);
    reader.close();
  });
});
