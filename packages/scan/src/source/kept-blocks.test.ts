import { afterAll, describe, expect, it } from "@jest/globals";
import type { LocalRef } from "@skald/storage";
import { scanLog } from "../scans/log.js";
import { contextOf, logPlan, rowsOf, sampleSources } from "../testing/scans.js";
import { KeptBlocks } from "./kept-blocks.js";
import type { Source } from "./source.js";

const { refs, open, close } = sampleSources();
afterAll(close);
const [segment, head] = refs.map(([, ref]) => ref) as [LocalRef, LocalRef];

/** The source, counting its reads of blocks and pages. */
function countReads(source: Source) {
  const reads = { blocks: 0, pages: 0 };
  const counting: Source = {
    ...source,
    block: (...asked) => {
      reads.blocks++;
      return source.block(...asked);
    },
    readPages: (...asked) => {
      reads.pages++;
      return source.readPages(...asked);
    },
  };
  return { counting, reads };
}

/** Runs a query over a source several times, with the same kept blocks. */
function scanAgain(ref: LocalRef, query: string, kept = new KeptBlocks()) {
  const { counting, reads } = countReads(open(ref));
  const plan = logPlan(query, { limit: 2, direction: "backward" });
  const context = { ...contextOf(), kept };
  const task = { plan, sources: [{ ref, sequence: 0 }] };
  const runs = [1, 2, 3].map(() => {
    const before = { ...reads };
    const { partial, stats } = scanLog(task, () => counting, context);
    const read = { blocks: reads.blocks - before.blocks, pages: reads.pages - before.pages };
    return { rows: rowsOf(plan, [partial]), stats, read };
  });
  return { runs, kept, counting };
}

describe("blocks of small log queries", () => {
  it("are read once, and answer with the same rows and statistics", () => {
    const { runs, kept } = scanAgain(segment, "{app=~`a|b`}");
    const [first, ...again] = runs;
    expect(first!.rows.length).toBe(2);
    for (const { rows, stats } of again) expect([rows, stats]).toEqual([first!.rows, first!.stats]);
    // Times are read each time, to find the blocks with the best rows.
    expect(again.map(({ read }) => read.blocks < first!.read.blocks)).toEqual([true, true]);
    expect(kept.bytes).toBeGreaterThan(0);
  });

  it("are not kept for a filter, nor of a head", () => {
    for (const [ref, query] of [
      [segment, "{app=~`a|b`} |= `even`"],
      [head, "{app=~`a|b`}"],
    ] as const) {
      const { runs, kept } = scanAgain(ref, query);
      expect(kept.bytes).toBe(0);
      expect(runs.map(({ read }) => read)).toEqual(runs.map(() => runs[0]!.read));
    }
  });

  it("are forgotten with their source, and not used for another opening of it", () => {
    const { kept, counting, runs } = scanAgain(segment, "{app=~`a|b`}");
    const reopened = scanAgain(segment, "{app=~`a|b`}", kept);
    expect(reopened.runs[0]!.read).toEqual(runs[0]!.read);
    kept.forget(counting);
    expect(kept.bytes).toBeGreaterThan(0);
    kept.forget(reopened.counting);
    expect(kept.bytes).toBe(0);
  });

  it("take a bounded amount of memory", () => {
    const kept = new KeptBlocks();
    const { counting } = countReads(open(segment));
    for (let i = 0; i < 200; i++) {
      const source = { ...counting, id: `s${i}` };
      const plan = logPlan("{app=`a`}", { limit: 2, direction: "backward" });
      const task = { plan, sources: [{ ref: segment, sequence: 0 }] };
      scanLog(task, () => source, { ...contextOf(), kept });
    }
    expect(kept.bytes).toBeGreaterThan(4 * 1024 * 1024);
    expect(kept.bytes).toBeLessThanOrEqual(8 * 1024 * 1024);
  });
});
