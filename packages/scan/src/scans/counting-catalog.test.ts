import { expect, it } from "@jest/globals";
import type { LeafPlan } from "@skald/logql";
import { DayIndex, type DayView, editDay } from "@skald/storage";
import { instantLeaf } from "../testing/scans.js";
import { makeDirectory, makeSegment, row, testDayNs } from "../testing/sources.js";
import { type CountDayTask, CountingCatalog, countDay } from "./counting-catalog.js";

const { signal } = new AbortController();

it("takes what others hold for busy, but for what the index has under its id or that of a merge", async () => {
  const directory = makeDirectory();
  const add = ["one", "merged-x"].map((id, i) => ({
    ref: makeSegment(directory.path, [row("a", 10 * i + 10, "x")], { id }),
    level: i,
  }));
  const gone = { minNs: testDayNs, maxNs: testDayNs, sinceMs: 1 };
  const { image } = editDay({
    ...{ tenant: "t", baseNs: testDayNs, base: undefined, forget: [], add },
    remove: [
      { id: "away", ...gone, by: "merged-x" },
      { id: "dropped", ...gone, by: undefined },
    ],
    ...{ generation: 1, writtenMs: 1 },
  });
  const day: DayView = { index: new DayIndex(image), young: [], select: () => [] };
  const asked: number[][] = [];
  const catalog = new CountingCatalog({
    catalog: { list: async () => [], days: async () => [day] },
    maxHere: 0,
    countDay: async ({ busy }: CountDayTask) => {
      asked.push([...busy]);
      return { left: new Uint32Array(0), countedSegments: 2, outcome: new Uint8Array(0) };
    },
  });
  const held = ["one", "away", "dropped", "unknown"];
  const times = [1, 3, 5, 7, 9].map((from) => ({
    fromNs: testDayNs + BigInt(from),
    toNs: testDayNs + BigInt(from + 1),
  }));
  const range = { fromNs: testDayNs, toNs: testDayNs + 100n };
  const options = { signal, share: { tenant: "t", actors: [], cost: 0 } };
  const count = (heldBusy: Partial<Record<"heldBusy", number>>) =>
    catalog.count(
      { tenant: "t", ...range, held, counting: { plan: {} as LeafPlan, busy: times, ...heldBusy } },
      options,
    );
  expect((await count({ heldBusy: 4 })).known).toEqual(["one", "away"]);
  await count({});
  expect(asked).toEqual([
    [5, 6, 7, 8, 9, 10],
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
  ]);
  directory.remove();
});

it("counts by a small index without asking another thread", async () => {
  const directory = makeDirectory();
  const ref = makeSegment(directory.path, [row("a", 10, "x"), row("b", 20, "y")], { id: "one" });
  const { image } = editDay({
    ...{ tenant: "t", baseNs: testDayNs, base: undefined, add: [{ ref, level: 0 }] },
    ...{ remove: [], forget: [], generation: 1, writtenMs: 1 },
  });
  const day: DayView = { index: new DayIndex(image), young: [], select: () => [] };
  const asked: CountDayTask[] = [];
  const costs: number[] = [];
  const found = async (maxHere: number) => {
    const catalog = new CountingCatalog({
      catalog: { list: async () => [], days: async () => [day] },
      maxHere,
      countDay: async (task, { share: { cost } }) => {
        asked.push(task);
        costs.push(cost);
        return countDay(task, new DayIndex(task.image), { check: () => {} });
      },
    });
    const range = { fromNs: testDayNs, toNs: testDayNs + 100n };
    const counting = { plan: instantLeaf("sum(count_over_time({app=~`.+`}[1s]))", 100), busy: [] };
    const share = { tenant: "t", actors: [], cost: 5 };
    return catalog.count({ tenant: "t", ...range, counting }, { signal, share });
  };
  const here = await found(2);
  expect([here.countedSegments, asked.length]).toEqual([1, 0]);
  expect(await found(1)).toEqual(here);
  expect(asked).toHaveLength(1);
  // Two streams of a segment.
  expect(costs).toEqual([5 + 2 * 64]);
  directory.remove();
});
