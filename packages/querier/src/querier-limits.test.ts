import { afterAll, afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { makeDirectory, makeSegment } from "@skald/scan/testing";
import { QueryTooHeavy } from "./run/query-run.js";
import { openViews } from "./testing/held-ingester.js";
import { LocalScanner } from "./testing/local-scanner.js";
import { querierOf } from "./testing/querier.js";
import { never, noLimits, request, sampleSegments, tenRows } from "./testing/requests.js";

const mib = 1024 * 1024;
const directory = makeDirectory();
const scanners: LocalScanner[] = [];
afterAll(() => {
  for (const scanner of scanners) scanner.close();
  directory.remove();
});

const segments = sampleSegments(directory.path);
/** The same, as if each were a task of its own. */
const large = segments.map((ref) => ({ ...ref, sizeBytes: 3 * 1024 * 1024 }));

let scans: LocalScanner;
// Whatever becomes of a query, it holds nothing of the ingester afterwards.
afterEach(() => expect([...openViews]).toEqual([]));

beforeEach(() => {
  // Those that tests of other files left.
  openViews.clear();
  scans = new LocalScanner();
  scanners.push(scans);
});

describe("limits", () => {
  const filtered = "sum(count_over_time({app=`a`} |= `a` [2s]))";
  const reading = (maxBytesRead: number) => ({ limits: { ...noLimits, maxBytesRead } });

  it("refuse a query from headers, before anything is read", async () => {
    // Sixty lines of two or three bytes.
    const querier = querierOf(scans, { store: segments });
    await expect(
      querier.run("query", request(filtered, reading(100)), never),
    ).rejects.toMatchObject({
      status: 400,
      message: expect.stringMatching(
        /^the query would read too many bytes \(query: 170 B, limit: 100 B\)/,
      ),
    });
    expect(scans.jobs).toEqual(["measure s0,s10,s20,s30,s40,s50"]);
    await querier.run("query", request(filtered, reading(170)), never);
    await querier.run("query", request("sum(count_over_time({app=`a`}[2s]))", reading(1)), never);
  });

  it("add up what the threads measure at the same time", async () => {
    const querier = querierOf(scans, { store: large });
    await expect(querier.run("query", request(filtered, reading(100)), never)).rejects.toThrow(
      "query: 170 B",
    );
    expect(scans.jobs).toHaveLength(6);
  });

  it("count the leaves of a query together", async () => {
    const querier = querierOf(scans, { store: segments });
    const both = `${filtered} / ${filtered.replace("`a` [", "`1` [")}`;
    await expect(querier.run("query", request(both, reading(300)), never)).rejects.toThrow(
      "query: 340 B",
    );
  });

  it("let a query read as far as its limit parameter goes, and no further", async () => {
    const querier = querierOf(scans, { store: large });
    await querier.run("query", request("{app=`a`}", reading(50), { limit: 5 }), never);
    expect(scans.jobs).toEqual(["scan s0"]);
    await expect(querier.run("query", request("{app=`a`}", reading(50)), never)).rejects.toThrow(
      "the query would read too many bytes",
    );
    expect(scans.jobs.length).toBeLessThan(6);
  });

  it("bound the lines of an answer", async () => {
    const limits = { ...noLimits, maxMemoryBytes: 4000 };
    const querier = querierOf(scans, { store: segments });
    await expect(querier.run("query", request("{app=`a`}", { limits }), never)).rejects.toThrow(
      "lower the parameter limit",
    );
    const { stats } = await querier.run(
      "query",
      request("{app=`a`}", { limits }, { limit: 10 }),
      never,
    );
    expect(stats.entriesReturned).toBe(10);
  });
});

describe("a querier for small queries", () => {
  const small = (maxHeldBytes: number) =>
    querierOf(scans, { store: segments }, undefined, { maxHeldBytes });

  it("gives up one whose rows turn out to be many", async () => {
    const all = request("{app=`a`}");
    await expect(small(2000).run("query", all, never)).rejects.toBeInstanceOf(QueryTooHeavy);
    const { stats } = await small(1e6).run("query", all, never);
    expect(stats.entriesReturned).toBe(60);
  });

  it("gives up one that may answer with many rows, before it scans", async () => {
    const querier = querierOf(scans, { store: large }, undefined, { maxCost: 50_000 });
    await querier.run("query", request("{app=`a`}", {}, { limit: 20 }), never);
    scans.jobs.length = 0;
    await expect(
      querier.run("query", request("{app=`a`}", {}, { limit: 30 }), never),
    ).rejects.toMatchObject({ cost: 30 * 2048 });
    expect(scans.jobs).toEqual([]);
  });
});

describe("the memory of all queries", () => {
  it("is taken by lines and samples, and what it lacks ends the query", async () => {
    let held = 0;
    let room = Number.POSITIVE_INFINITY;
    const memory = {
      take: (bytes: number) => {
        held += bytes;
        if (held > room) throw new Error("no more for anybody");
      },
      give: (bytes: number) => {
        held -= bytes;
      },
    };
    const querier = querierOf(scans, { store: segments }, undefined, { memory });
    for (const query of ["{app=`a`}", "sum by (app) (count_over_time({app=`a`}[2s]))"]) {
      held = 0;
      room = Number.POSITIVE_INFINITY;
      await querier.run("query", request(query), never);
      expect(held).toBeGreaterThan(100);
      room = held / 2;
      held = 0;
      await expect(querier.run("query", request(query), never)).rejects.toThrow(
        "no more for anybody",
      );
    }
  });
});

describe("the first scans of a query", () => {
  const query = "sum by (app) (count_over_time({app=`a`} |~ `.` [2s]))";
  /** What counts for all queries when each scan of this one begins. */
  async function heldAtScans(sizeBytes: number, asked: string): Promise<number[]> {
    let held = 0;
    const memory = {
      take: (bytes: number) => {
        held += bytes;
      },
      give: (bytes: number) => {
        held -= bytes;
      },
    };
    const store = segments.map((ref) => ({ ...ref, sizeBytes }));
    const seen: number[] = [];
    scans.onJob = (name) => {
      if (name === "scan") seen.push(held);
    };
    await querierOf(scans, { store }, undefined, { memory }).run("query", request(asked), never);
    return seen;
  }

  it("count by a guess, until one came back", async () => {
    const seen = await heldAtScans(3 * mib, query);
    expect(seen[0]).toBeGreaterThan(mib);
    expect(seen.at(-1)).toBeLessThan(mib);
  });

  it("count for nothing where the query is small, or only headers are read", async () => {
    expect((await heldAtScans(1024, query))[0]).toBe(0);
    const counted = "sum(count_over_time({app=`a`}[2s]))";
    expect((await heldAtScans(3 * mib, counted))[0]).toBe(0);
  });
});

describe("cancellation", () => {
  const overlapping = makeSegment(directory.path, tenRows("b", 0), { id: "b0" });
  const reason = new Error("the client has gone");

  it.each([
    ["measure", "sum(count_over_time({app=`a`} |= `a` [2s]))"],
    ["sharedRows", "sum(count_over_time({app=`a`}[2s]))"],
    ["scan", "sum(count_over_time({app=`a`}[2s])) / sum(count_over_time({app=`a`} |= `a` [2s]))"],
    ["scan", "{app=`a`} |= `a`"],
  ])("in %s ends the query: nothing more is begun", async (name, query) => {
    const stop = new AbortController();
    const querier = querierOf(scans, { store: [...segments, overlapping] });
    scans.onJob = (job) => {
      if (job === name) stop.abort(reason);
    };
    const limits = { ...noLimits, maxBytesRead: name === "measure" ? 1e6 : 0 };
    await expect(querier.run("query", request(query, { limits }), stop)).rejects.toBe(reason);
    const begun = scans.jobs.length;
    await new Promise((resolve) => setImmediate(resolve));
    expect(scans.jobs).toHaveLength(begun);
    expect(scans.jobs.filter((job) => job.startsWith(name)).length).toBeLessThanOrEqual(
      scans.threads * 2,
    );
  });

  it("ends a query that is being planned, and one that is not begun", async () => {
    const stop = new AbortController();
    const querier = querierOf(scans, { store: segments });
    const planned = querier.run("query", request("{app=`a`}"), stop);
    stop.abort(reason);
    await expect(planned).rejects.toBe(reason);
    await expect(querier.run("query", request("{app=`a`}"), stop)).rejects.toBe(reason);
    expect(scans.jobs).toEqual([]);
  });

  it("ends a look-up of streams", async () => {
    const stop = new AbortController();
    scans.onJob = () => stop.abort(reason);
    const all = { tenants: ["t"], selectors: [], fromNs: 0n, toNs: 2n ** 62n };
    await expect(querierOf(scans, { store: segments }).run("streams", all, stop)).rejects.toBe(
      reason,
    );
  });
});
