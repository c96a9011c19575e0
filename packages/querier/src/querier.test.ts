import { afterAll, afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { labelSetsOf, type StreamColumns } from "@skald/contracts";
import { formatLabels, notFound } from "@skald/model";
import { makeDirectory, makeHead, makeSegment, row } from "@skald/scan/testing";
import type { Querier } from "./querier.js";
import { openViews } from "./testing/held-ingester.js";
import { LocalScanner } from "./testing/local-scanner.js";
import { plain } from "./testing/plain.js";
import { querierOf } from "./testing/querier.js";
import { never, request, sampleSegments, tenRows } from "./testing/requests.js";

const directory = makeDirectory();
const scanners: LocalScanner[] = [];
afterAll(() => {
  for (const scanner of scanners) scanner.close();
  directory.remove();
});

const segments = sampleSegments(directory.path);
/** The same, as if each were a task of its own. */
const large = segments.map((ref) => ({ ...ref, sizeBytes: 1024 * 1024 }));

let scans: LocalScanner;
// Whatever becomes of a query, it holds nothing of the ingester afterwards.
afterEach(() => expect([...openViews]).toEqual([]));

beforeEach(() => {
  // Those that tests of other files left.
  openViews.clear();
  scans = new LocalScanner();
  scanners.push(scans);
});

const lines = (querier: Querier, query: string, params = {}) =>
  querier
    .run("query", request(query, {}, params), never)
    .then((answer) => (plain(answer) as string[]).map((text) => text.split(" ").at(-1)));

describe("log queries", () => {
  it("read only as many sources as they need, the best first", async () => {
    const querier = querierOf(scans, { store: large });
    expect(await lines(querier, "{app=`a`}", { limit: 3 })).toEqual(["a0", "a1", "a2"]);
    expect(scans.jobs).toEqual(["scan s0"]);
    scans.jobs.length = 0;
    const params = { limit: 11, direction: "backward" };
    expect(await lines(querier, "{app=`a`}", params)).toHaveLength(11);
    // One source has ten rows: the second wave is two wide.
    expect(scans.jobs).toEqual(["scan s50", "scan s40", "scan s30"]);
  });

  it("begin with a source for each thread when a filter may drop rows", async () => {
    const halves = large.map((ref) => ({ ...ref, sizeBytes: ref.sizeBytes / 2 }));
    const querier = querierOf(scans, { store: halves });
    expect(await lines(querier, "{app=`a`} |= `a5`", { limit: 2 })).toEqual(["a5", "a50"]);
    expect(scans.jobs.slice(0, 2)).toEqual(["scan s0", "scan s10"]);
    expect(scans.jobs.slice(2).join()).toContain("s20,s30");
  });

  it.each(["forward", "backward"])(
    "hold few of the lines of a source at a time where these are long: %s",
    async (direction) => {
      const mib = 1024 * 1024;
      const many = Array.from({ length: 18 }, (_, i) =>
        row("a", i, `${String(i).padStart(4, "0")}${"x".repeat(3 * mib - 4)}`),
      );
      const held: number[] = [];
      const run = scans.run.bind(scans);
      scans.run = async (kind, task, options) => {
        const answer = await run(kind, task, options);
        if (answer instanceof Uint8Array) held.push(Math.floor(answer.byteLength / mib));
        return answer;
      };
      const querier = querierOf(scans, {
        ingester: [makeHead(many, { id: "h", rowsPerBlock: 1 })],
      });
      const numbers = async (params: object) =>
        (await lines(querier, "{app=`a`}", params)).map((line) => Number(line?.slice(0, 4)));
      const want = direction === "forward" ? [...many.keys()] : [...many.keys()].reverse();
      expect(await numbers({ direction })).toEqual(want);
      expect(held).toEqual([33, 21]);
      held.length = 0;
      expect(await numbers({ direction, limit: 13 })).toEqual(want.slice(0, 13));
      expect(held).toEqual([33, 6]);
    },
  );

  it("use a segment once that the ingester and the store have", async () => {
    const querier = querierOf(scans, { ingester: segments, store: segments });
    const { stats } = await querier.run("query", request("{app=`a`}"), never);
    expect([stats.ingester.sources, stats.store.sources]).toEqual([6, 0]);
    expect(stats.entriesReturned).toBe(60);
  });

  it("use a row once that several sources have", async () => {
    const again = makeSegment(directory.path, tenRows("a", 5), { id: "again" });
    const head = makeHead(tenRows("a", 8), { id: "head" });
    const querier = querierOf(scans, { ingester: [head], store: [...segments.slice(0, 1), again] });
    const { stats } = await querier.run("query", request("{app=`a`}"), never);
    expect(stats.entriesReturned).toBe(18);
    expect([stats.ingester.duplicates, stats.store.duplicates]).toEqual([7, 5]);
    expect(scans.jobs.filter((job) => !job.startsWith("scan")).sort()).toEqual([
      "duplicates head,s0,again",
      "sharedRows s0,again",
    ]);
  });

  it("do not look for duplicates in sources that they never read", async () => {
    const overlapping = makeSegment(directory.path, tenRows("b", 55), { id: "b55" });
    const querier = querierOf(scans, { store: [...large, overlapping] });
    await lines(querier, "{app=`a`}", { limit: 3 });
    expect(scans.jobs).toEqual(["scan s0"]);
  });

  it("are empty without sources or time", async () => {
    expect(await lines(querierOf(scans, {}), "{app=`a`}")).toEqual([]);
    expect(
      await lines(querierOf(scans, { store: segments }), "{app=`a`}", { from: 5, to: 5 }),
    ).toEqual([]);
    expect(scans.jobs).toEqual([]);
  });
});

describe("metric queries", () => {
  it("scan every source, and list those of one selector and range once", async () => {
    const again = makeSegment(directory.path, tenRows("a", 55), { id: "a55" });
    const querier = querierOf(scans, { store: [...segments, again] });
    const query =
      "sum(count_over_time({app=`a`} |= `a` [2s])) / sum(count_over_time({app=`a`}[2s]))";
    expect(plain(await querier.run("query", request(query), never))).toEqual(["{} 1"]);
    expect(scans.jobs).toEqual([
      "sharedRows s50,a55",
      "scan s0,s10,s20,s30,s40,s50,a55",
      "scan s0,s10,s20,s30,s40,s50,a55",
    ]);
  });

  it("report what was read", async () => {
    const querier = querierOf(scans, {
      ingester: [makeHead(tenRows("b", 0), { id: "h" })],
      store: segments,
    });
    const { stats } = await querier.run(
      "query",
      request("sum(count_over_time({app=~`.+`} |= `1` [2s]))"),
      never,
    );
    expect(stats.store).toMatchObject({ sources: 6, sourcesScanned: 6, decompressedLines: 60 });
    expect(stats.ingester).toMatchObject({
      sources: 1,
      sourcesScanned: 1,
      headLines: 10,
      headBytes: 20,
    });
    expect(stats).toMatchObject({ streams: 1, shards: 2, entriesReturned: 1 });
    // a1, a10 to a19, a21, a31, a41, a51; b1
    expect([stats.store.postFilterLines, stats.ingester.postFilterLines]).toEqual([15, 1]);
    expect(stats.ingester.linesSent).toBe(1);
    const wholeBytes = segments.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    expect(stats.store.compressedBytes).toBeGreaterThan(0);
    expect(stats.store.compressedBytes).toBeLessThan(wholeBytes / 4);
  });

  it("count no source that has no stream of the query, and the lines of log queries", async () => {
    const head = makeHead(tenRows("b", 0), { id: "h" });
    const querier = querierOf(scans, { ingester: [head], store: segments });
    const statsOf = async (query: string, limit: number) => {
      const { stats } = await querier.run("query", request(query, {}, { limit }), never);
      return { ...stats.ingester, entries: stats.entriesReturned };
    };
    expect(await statsOf("{app=`none`}", 5)).toMatchObject({ sourcesScanned: 0, entries: 0 });
    expect(await statsOf("{app=`b`} |= `b`", 2)).toMatchObject({
      ...{ sourcesScanned: 1, postFilterLines: 10, linesSent: 2, entries: 2 },
    });
  });
});

describe("several tenants", () => {
  const other = makeSegment(directory.path, tenRows("a", 0), { id: "other", tenant: "u" });
  const tenants = ["t", "u"];

  it("are told apart by a label, and chosen by it", async () => {
    const querier = querierOf(scans, { store: [segments[0], other] });
    const query = "sum by (__tenant_id__) (count_over_time({app=`a`}[2s]))";
    expect(plain(await querier.run("query", request(query, { tenants }), never))).toEqual([
      '{__tenant_id__="t"} 10',
      '{__tenant_id__="u"} 10',
    ]);
    const one = request("{app=`a`,__tenant_id__=`u`}", { tenants }, { limit: 1 });
    expect(plain(await querier.run("query", one, never))).toEqual([
      '0 {__tenant_id__="u", app="a"} a0',
    ]);
  });

  it("order rows of equal time by stream, of which the tenant is a label", async () => {
    const querier = querierOf(scans, { store: [other, segments[0]] });
    const answer = await querier.run(
      "query",
      request("{app=`a`}", { tenants }, { limit: 4 }),
      never,
    );
    expect(plain(answer)).toEqual([
      '0 {__tenant_id__="u", app="a"} a0',
      '0 {__tenant_id__="t", app="a"} a0',
      '1000000 {__tenant_id__="u", app="a"} a1',
      '1000000 {__tenant_id__="t", app="a"} a1',
    ]);
  });
});

describe("a segment that is gone when it is opened", () => {
  it("is looked for again, in a fresh listing", async () => {
    const listings: boolean[] = [];
    const querier = querierOf(scans, { store: segments }, (fresh) => listings.push(fresh));
    let failures = 1;
    scans.onJob = () => {
      if (failures-- > 0) throw notFound("segment file is gone");
    };
    expect(await lines(querier, "{app=`a`}", { limit: 1 })).toEqual(["a0"]);
    expect(listings).toEqual([false, true]);
  });

  it("makes the query fail as one to be tried again", async () => {
    scans.onJob = () => {
      throw notFound("segment file is gone");
    };
    const querier = querierOf(scans, { store: segments });
    const failure = { code: "unavailable", message: expect.stringContaining("try again") };
    await expect(querier.run("query", request("{app=`a`}"), never)).rejects.toMatchObject(failure);
    const all = { tenants: ["t"], selectors: [], fromNs: 0n, toNs: 2n ** 62n };
    await expect(querier.run("streams", all, never)).rejects.toMatchObject(failure);
  });
});

describe("streams", () => {
  it("are found in all sources of each tenant", async () => {
    const head = makeHead([...tenRows("b", 0), ...tenRows("a", 3)], { id: "h" });
    const other = makeSegment(directory.path, tenRows("c", 0), { id: "c", tenant: "u" });
    const querier = querierOf(scans, { ingester: [head], store: [...segments, other] });
    const all = { tenants: ["t", "u", "v"], selectors: [], fromNs: 0n, toNs: 2n ** 62n };
    const found = await querier.run("streams", all, never);
    const textsOf = (lists: readonly StreamColumns[]) =>
      lists.flatMap((streams) => labelSetsOf(streams).map(formatLabels));
    expect(found.map(({ tenant, streams }) => [tenant, ...textsOf(streams).sort()])).toEqual([
      ["t", '{app="a"}', '{app="b"}'],
      ["u", '{app="c"}'],
      ["v"],
    ]);
    expect(await querier.run("labels", { ...all, label: "app" }, never)).toEqual([
      { tenant: "t", texts: ["a", "b"] },
      { tenant: "u", texts: ["c"] },
      { tenant: "v", texts: [] },
    ]);
  });
});

describe("volumes", () => {
  const bucket = { firstNs: 0n, stepNs: 2n ** 62n, count: 1 };
  const ask = (querier: Querier, tenants: string[], more = {}) =>
    querier.run(
      "volumes",
      {
        tenants,
        matchers: [{ name: "app", op: "=~", value: ".+" }],
        groupBy: { kind: "series", names: ["app"] },
        buckets: bucket,
        maxGroups: 10,
        countsStreams: true,
        fromNs: 0n,
        toNs: 2n ** 62n,
        ...more,
      },
      never,
    );

  it("count a row once that several sources have", async () => {
    const again = makeSegment(directory.path, tenRows("a", 5), { id: "twice" });
    const querier = querierOf(scans, { store: [...segments, again] });
    const { groups, rows, streamCount, stats } = await ask(querier, ["t"]);
    expect(groups.map(formatLabels)).toEqual(['{app="a"}']);
    expect([[...rows], streamCount]).toEqual([[60], 1]);
    expect(stats.store.duplicates).toBe(10);
  });

  it("refuse more groups than they may have, over all sources", async () => {
    const other = makeSegment(directory.path, tenRows("b", 200), { id: "other" });
    const querier = querierOf(scans, { store: [...large, other] });
    expect((await ask(querier, ["t"])).groups).toHaveLength(2);
    await expect(ask(querier, ["t"], { maxGroups: 1 })).rejects.toThrow("(limit: 1 series)");
  });
});
