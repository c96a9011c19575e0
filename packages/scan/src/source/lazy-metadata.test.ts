import { afterAll, describe, expect, it } from "@jest/globals";
import type { Block } from "@skald/model";
import { openSegmentFile } from "@skald/storage";
import { makeDirectory, makeSegment, row } from "../testing/sources.js";
import { withLazyMetadata } from "./block-reader.js";

const directory = makeDirectory();
const rows = [row("a", 1, "x", { trace: "t1" }), row("a", 2, "y"), row("a", 3, "z", { user: "ü" })];
const { segment, close } = openSegmentFile(makeSegment(directory.path, rows, { id: "s" }));
afterAll(() => {
  close();
  directory.remove();
});

/** The block, and the names of the columns that were read. */
function watched(): { block: Block; read: string[] } {
  const read: string[] = [];
  const plain = segment.block(0);
  const metadata: Block["metadata"] = (name) => {
    read.push(name);
    return plain.metadata(name);
  };
  return { block: withLazyMetadata({ ...plain, metadata }), read };
}

describe("withLazyMetadata", () => {
  it("reads a column when its values are asked for, once", () => {
    const { block, read } = watched();
    const column = block.metadata("trace");
    expect([column?.kind, read]).toEqual(["bytes", []]);
    if (column?.kind !== "bytes") return;
    expect([...column.offsets]).toEqual([0, 2, 2, 2]);
    expect(Buffer.from(column.bytes.subarray(0, 2)).toString()).toBe("t1");
    expect(block.metadata("trace")).toBe(column);
    expect(read).toEqual(["trace"]);
  });

  it("has the names, and no column of another", () => {
    const { block, read } = watched();
    expect([...block.metadataNames()].sort()).toEqual(["trace", "user"]);
    expect(block.metadata("span")).toBeUndefined();
    expect(read).toEqual([]);
  });

  it("leaves everything else as it is", () => {
    const { block } = watched();
    const plain = segment.block(0);
    expect([block.rowCount, block.baseNs, block.runs]).toEqual([3, plain.baseNs, plain.runs]);
    expect(block.timestamps()).toEqual(plain.timestamps());
    expect(block.lines()).toEqual(plain.lines());
  });
});
