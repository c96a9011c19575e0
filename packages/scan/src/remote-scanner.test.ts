import { describe, expect, it } from "@jest/globals";
import {
  decodeOutcome,
  decodeStreams,
  decodeTexts,
  labelSetsOf,
  type ScanOutcome,
  type ScanPlan,
  streamCountOf,
} from "@skald/contracts";
import type { LogPlan } from "@skald/logql";
import type { SegmentRef } from "@skald/model";
import { sourcesOf } from "./source/source.js";
import { options, putFile, remoteSegments, taskOf } from "./testing/remote.js";
import { leafOf, logPlan } from "./testing/scans.js";
import { makeSegment, row } from "./testing/sources.js";

const remote = remoteSegments();
const range = { fromNs: 0n, toNs: 1n << 62n };

const plans: [string, ScanPlan][] = [
  ["the newest rows", logPlan("{app=~`.+`}", { limit: 20, direction: "backward" })],
  ["the oldest rows", logPlan("{app=`app1`}", { limit: 2000 })],
  ["rows with a word", logPlan("{app=~`.+`} |= `needle`", { limit: 1000 })],
  ["few rows with a word", logPlan("{app=~`.+`} |= `needle`", { limit: 3, direction: "backward" })],
  ["metadata", logPlan("{app=~`.+`} | trace=~`a.+`", { limit: 50 })],
  [
    "a count by headers",
    leafOf("sum by (app) (count_over_time({app=~`.+`}[1s]))", { from: 1e9, to: 1e9 }),
  ],
  [
    "a count of lines",
    leafOf("sum(count_over_time({app=~`.+`} |= `needle` [1s]))", { from: 1e9, to: 1e9 }),
  ],
];

function withoutCache({ stats, ...outcome }: ScanOutcome<ScanPlan>) {
  const {
    fetchedRanges,
    fetchedPages,
    fetchedBytes,
    cachedPages,
    cachedBytes,
    downloadNs,
    ...rest
  } = stats;
  return { ...outcome, stats: rest };
}

describe("a scan of the store", () => {
  it.each(plans)("finds what one of remote.files does: %s", async (_, plan) => {
    const { scanner, pool, cache } = remote.setUp();
    await cache.open();
    for (const round of ["cold", "warm"]) {
      const local = decodeOutcome(await pool.run("scan", taskOf(plan, remote.files), options));
      const found = decodeOutcome(await scanner.run("scan", taskOf(plan, remote.objects), options));
      expect(withoutCache(found)).toEqual(withoutCache(local));
      const fetched = remote.reads.reduce((sum, { length }) => sum + length, 0);
      const { fetchedRanges, fetchedBytes, cachedPages } = found.stats;
      const want = round === "cold" ? [remote.reads.length, fetched] : [0, 0];
      expect([fetchedRanges, fetchedBytes]).toEqual(want);
      if (round === "warm") expect(cachedPages + Number("leaf" in plan)).toBeGreaterThanOrEqual(0);
      remote.reads = [];
    }
  });

  it("reads as little as it needs, in few requests", async () => {
    const sizes = remote.objects.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    expect(sizes).toBeGreaterThan(5_000_000);
    const read = async (plan: ScanPlan) => {
      remote.reads = [];
      const { scanner, cache, runs } = remote.setUp();
      await cache.open();
      await scanner.run("scan", taskOf(plan, remote.objects), options);
      const share = remote.reads.reduce((sum, { length }) => sum + length, 0) / sizes;
      return { share, requests: remote.reads.length, runs: runs.length };
    };
    const [newest, , words, , , headers] = plans.map(([, plan]) => plan) as [
      ScanPlan,
      ...ScanPlan[],
    ];
    const byHeaders = await read(headers as ScanPlan);
    expect(byHeaders).toMatchObject({ requests: 3, runs: 1 });
    expect(byHeaders.share).toBeLessThan(0.06);
    const byTimes = await read(newest);
    expect(byTimes.share).toBeLessThan(0.5);
    expect(byTimes.runs).toBeLessThan(8);
    const whole = await read(words as ScanPlan);
    expect(whole.share).toBeLessThanOrEqual(1.05);
    expect(whole.runs).toBeLessThan(6);
    expect(whole.requests).toBeLessThan(12);
  });

  it("measures, and finds streams, from indexes alone", async () => {
    const { scanner, pool, cache } = remote.setUp();
    await cache.open();
    const plan = plans[2]?.[1] as LogPlan;
    const bytes = await scanner.run("measure", taskOf(plan, remote.objects), options);
    expect(bytes).toEqual(await pool.run("measure", taskOf(plan, remote.files), options));
    const searched = remote.reads.length;
    const task = { sources: sourcesOf(remote.objects), selectors: [], ...range };
    const streams = decodeStreams(await scanner.run("streams", task, options));
    expect(labelSetsOf(streams).map(({ values }) => values.join())).toEqual(
      expect.arrayContaining(["app0", "app1", "app2"]),
    );
    expect(streamCountOf(streams)).toBe(3);
    const labels = await scanner.run("labels", { ...task, label: "app" }, options);
    expect(decodeTexts(labels)).toEqual(["app0", "app1", "app2"]);
    // The ends of three remote.objects, and their filters.
    expect(searched).toBeLessThanOrEqual(6);
    expect(remote.reads).toHaveLength(searched);
  });

  it("asks filters before it fetches what they refuse", async () => {
    const { scanner, pool, cache, runs } = remote.setUp();
    await cache.open();
    const plan = logPlan("{app=~`.+`} |= `not a single line has words like these ones`", {
      limit: 10,
    });
    const local = decodeOutcome(await pool.run("scan", taskOf(plan, remote.files), options));
    expect(local.stats.refusedBlocks).toBeGreaterThan(0);
    runs.length = 0;
    const found = decodeOutcome(await scanner.run("scan", taskOf(plan, remote.objects), options));
    expect(withoutCache(found)).toEqual(withoutCache(local));
    expect(found.stats.decompressedLines).toBe(0);
    expect(runs.length).toBeLessThanOrEqual(2);
    const sizes = remote.objects.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    expect(remote.reads.reduce((sum, { length }) => sum + length, 0)).toBeLessThan(sizes / 3);
  });

  it("decodes the index of many streams once for all threads, and forgets it with the file", async () => {
    const rows = Array.from({ length: 5000 }, (_, i) => row(`app${i}`, i, `line ${i}`));
    const file = makeSegment(remote.directory, rows, { id: "many" });
    const ref = await putFile(remote.store, file);
    const { scanner, cache, images } = remote.setUp();
    await cache.open();
    const task = { sources: sourcesOf([ref]), selectors: [], ...range, label: "app" };
    const find = async () => decodeTexts(await scanner.run("labels", task, options)).length;
    expect([await find(), await find()]).toEqual([5000, 5000]);
    expect(images()).toEqual([false, true]);
    await cache.drop("many");
    expect([await find(), await find()]).toEqual([5000, 5000]);
    expect(images()).toEqual([false, true, false, true]);
  });

  it("finds duplicates", async () => {
    const { scanner, cache } = remote.setUp();
    await cache.open();
    const [first, second, again] = remote.objects as [SegmentRef, SegmentRef, SegmentRef];
    const mask = await scanner.run(
      "duplicates",
      { sources: sourcesOf([again, second, first]) },
      options,
    );
    expect(mask.rows.reduce((sum, { length }) => sum + length, 0)).toBe(500);
  });

  it("finds the rows of filters, each filter once", async () => {
    const { scanner, cache, runs } = remote.setUp();
    await cache.open();
    const sources = sourcesOf(remote.objects.slice(0, 1));
    const filterOf = (id: string, query: string) => {
      const { log, nowNs } = logPlan(query);
      return { id, log, nowNs, ...range };
    };
    const none = filterOf("1", "{app=~`.+`} |= `no such text at all`");
    const all = filterOf("2", "{app=~`.+`} != `no such text at all`");
    const find = async (...filters: (typeof none)[]) => {
      const { mask, rowCount } = await scanner.run("matches", { sources, filters }, options);
      return mask.rows.reduce((sum, { length }) => sum + length, 0) / rowCount;
    };
    expect([await find(none), await find(all), await find(none, all)]).toEqual([0, 1, 1]);
    const before = runs.length;
    expect([await find(none), await find(none, all)]).toEqual([0, 1]);
    expect(runs.length).toBe(before);
  });
});
