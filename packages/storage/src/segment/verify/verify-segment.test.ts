import { readFileSync } from "node:fs";
import { describe, expect, it } from "@jest/globals";
import { goldenPath } from "../../testing/golden.js";
import { bytesRange } from "../range-reader.js";
import { readEnd, type SegmentCheck, verifySegment } from "./verify-segment.js";

const names = [
  "",
  "-filters",
  "-bitmaps",
  "-digests",
  "-levels",
  "-marks",
  "-bounds",
  "-codes",
  "-texts",
  "-blooms",
].map((name) => `segment-v1${name}.parquet`);

function verify(bytes: Uint8Array): SegmentCheck {
  const steps = verifySegment(bytesRange("golden", bytes));
  let step = steps.next();
  while (!step.done) step = steps.next();
  return step.value;
}

/** Every byte of one file, every seventh of the others. */
describe.each(names)("%s", (name) => {
  const step = name.endsWith("levels.parquet") ? 1 : 7;
  const bytes = readFileSync(goldenPath(name));

  it("is whole", () => {
    const { damage, found } = verify(bytes);
    expect(damage).toEqual([]);
    expect(found).toMatchObject({ id: "golden", tenant: "golden", sizeBytes: bytes.length });
  });

  it("has no byte that can change without being found", () => {
    const missed: number[] = [];
    const parts = new Map<string, number>();
    for (let at = 0; at < bytes.length; at += step) {
      const flipped = Uint8Array.from(bytes);
      flipped[at]! ^= 1 << (at % 8);
      const { damage } = verify(flipped);
      if (damage.length === 0) missed.push(at);
      else parts.set(damage[0]!.part, at);
    }
    expect(missed).toEqual([]);
    expect([...parts.keys()]).toEqual(
      expect.arrayContaining(["head", "index", "footer", "page indexes"]),
    );
  });
});

it("names what is damaged", () => {
  const bytes = readFileSync(goldenPath("segment-v1-filters.parquet"));
  const { trailer } = readEnd(bytesRange("golden", bytes));
  const flip = (at: number) => {
    const flipped = Uint8Array.from(bytes);
    flipped[at]! ^= 16;
    return verify(flipped).damage;
  };
  expect(flip(trailer.indexOffset - 1)).toMatchObject([
    { part: expect.stringMatching(/^filter of blocks 0 to/) },
  ]);
  expect(flip(trailer.indexOffset)).toMatchObject([{ part: "index" }]);
  expect(flip(4)).toMatchObject([{ part: "column timestamp, page of block 0", offset: 4 }]);
});
