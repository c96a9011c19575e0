import { describe, expect, it } from "@jest/globals";
import { makeBatch, seededRandom, testRuns, testSeed } from "@skald/testkit";
import { HeadDuplicates, RowHashes } from "./duplicates.js";
import { Head, HeadMemory, PinnedFiles } from "./head.js";

type Row = readonly [ns: number, line: string];

function headWith(pushes: readonly (readonly Row[])[]): Head {
  const memory = new HeadMemory({ maxBytes: 0 });
  const files = new PinnedFiles();
  const head = new Head({ id: "h", tenant: "t", day: 0, nowMs: 0, memory, files });
  for (const rows of pushes) head.append(batchOf(rows), 0, rows.length, 0);
  return head;
}

const batchOf = (rows: readonly Row[]) =>
  makeBatch([{ labels: { app: "a" }, rows: rows.map(([ns, line]) => ({ ns: BigInt(ns), line })) }]);

/** For each row whether the head has it. */
function search(head: Head, rows: readonly Row[]): boolean[] {
  const duplicates = new HeadDuplicates(head, 0, batchOf(rows));
  return rows.map(([ns], row) => duplicates.has(row, ns));
}

describe("rows that a head may have", () => {
  const seed = testSeed();

  it.each(Array.from({ length: testRuns(30) }, (_, i) => seed + i))("are found, seed %i", (one) => {
    const random = seededRandom(one);
    const times = 1 + random(5000);
    // Lines of a hundred bytes or of thousands: many rows in a block, or few.
    const filler = "x".repeat([0, 100, 20_000][random(3)]!);
    const makeRow = (ns: number): Row => [ns, `${random(3)}${filler}`];
    const made = (): Row[] => {
      const from = random(times);
      const count = 1 + random(filler.length > 1000 ? 30 : 3000);
      const step = random(3);
      const isOrdered = random(4) > 0;
      return Array.from({ length: count }, (_, i) =>
        makeRow(isOrdered ? from + i * step : random(times)),
      );
    };
    const held = Array.from({ length: 1 + random(8) }, made);
    const known = new Set(held.flat().map((row) => row.join(" ")));
    const head = headWith(held);
    for (let push = 0; push < 3; push++) {
      const rows = random(2) === 0 ? made() : held[random(held.length)]!;
      expect(search(head, rows)).toEqual(rows.map((row) => known.has(row.join(" "))));
      const more = made();
      for (const row of more) known.add(row.join(" "));
      head.append(batchOf(more), 0, more.length, 0);
    }
  });

  it("are found by their times where these never fall, however many runs have those", () => {
    const sweep = (at: number) =>
      Array.from({ length: 2000 }, (_, i): Row => [i * 50 + at, "x".repeat(1000)]);
    const head = headWith(Array.from({ length: 10 }, (_, i) => sweep(i)));
    expect(head.blocks.length).toBeGreaterThan(15);
    expect(search(head, sweep(3)).every((isThere) => isThere)).toBe(true);
    expect(search(head, sweep(11)).some((isThere) => isThere)).toBe(false);
    expect(head.hashed.size).toBe(0);
  });
});

describe("rows by hash", () => {
  it("are there while a table moves to a larger one, and when room is made for them", () => {
    const random = seededRandom(1);
    const hashes = new RowHashes();
    const all: number[] = [];
    for (let step = 0; step < 40; step++) {
      const count = random(500);
      if (random(2) === 0) hashes.reserve(count);
      for (let i = 0; i < count; i++) {
        // Some rows have one hash.
        const hash = random(2) === 0 ? random(50) : random(2 ** 32) | 0;
        hashes.add(hash, all.push(hash) - 1);
        const at = random(all.length);
        expect(hashes.some(all[at]!, (number) => number === at)).toBe(true);
      }
    }
    expect(hashes.some(12_345_678, () => true)).toBe(false);
  });
});
