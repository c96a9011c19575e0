import { afterAll, afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import type { ScanOptions } from "@skald/contracts";
import type { SegmentRef } from "@skald/model";
import { makeDirectory, makeSegment, row } from "@skald/scan/testing";
import type { Found } from "./find/source-finder.js";
import { KnownGrowths } from "./run/cut-tasks.js";
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

it("asks again in fewer scans where the first time most was not read", async () => {
  const growths = new KnownGrowths();
  for (const query of ["{app=`a`} |= `nowhere`", "sum(rate({app=`a`} |= `nowhere` [2s]))"]) {
    const counts: number[] = [];
    for (let i = 0; i < 2; i++) {
      scans.jobs.length = 0;
      await querierOf(scans, { store: large }, undefined, { growths }).run(
        "query",
        request(query),
        never,
      );
      counts.push(scans.jobs.length);
    }
    expect(counts[0]).toBeGreaterThan(1);
    expect(counts[1]).toBe(1);
  }
});

it("counts each stream that a scan finds, so that scans of many streams wait with those of many bytes", async () => {
  const streams = Array.from({ length: 100 }, (_, i) => i);
  const store = [0, 10, 20, 30, 40, 50].map((from) => ({
    ...makeSegment(
      directory.path,
      streams.map((i) => row(`m${i}`, from * 1e6 + i, "x")),
      { id: `m${from}` },
    ),
    sizeBytes: large[0]!.sizeBytes,
  }));
  const costs: number[] = [];
  const counted = new LocalScanner(1);
  scanners.push(counted);
  const run = counted.run.bind(counted);
  counted.run = (kind, task, options) => {
    costs.push((options as ScanOptions).share.cost);
    return run(kind, task, options);
  };
  const query = "sum by (app) (count_over_time({app=~`m.+`} |= `x` [1s]))";
  await querierOf(counted, { store }).run("query", request(query), never);
  const [before = 0, after = 0] = [costs.at(0), costs.at(-1)];
  expect(after - before).toBe(streams.length * 256);
});

describe("a querier for small queries", () => {
  const moved = new Error("it runs elsewhere");
  /** Such a querier, with what it gave to others. */
  const smallQuerier = (
    { maxCost = 1e9, maxHeldBytes = 1e9, takesNarrow = false },
    store: readonly SegmentRef[] = segments,
  ) => {
    const given: Found[] = [];
    const moveOn = (found: Found) => {
      given.push(structuredClone(found));
      return moved;
    };
    const small = { maxCost, maxHeldBytes, takesNarrow, moveOn };
    return { given, querier: querierOf(scans, { store }, undefined, { small }) };
  };
  /** A querier that goes on with what was found; `listed` tells of each listing whether it had to be fresh. */
  const nextQuerier = (found: Found | undefined, store: readonly SegmentRef[] = segments) => {
    const listed: boolean[] = [];
    const querier = querierOf(scans, { store }, (fresh) => listed.push(fresh), { found });
    return { listed, querier };
  };

  it("gives up one whose rows turn out to be many", async () => {
    const all = request("{app=`a`}");
    const { querier, given } = smallQuerier({ maxHeldBytes: 2000 });
    await expect(querier.run("query", all, never)).rejects.toBe(moved);
    expect(given[0]?.cost).toBeGreaterThanOrEqual(2000);
    const { stats } = await smallQuerier({ maxHeldBytes: 1e6 }).querier.run("query", all, never);
    expect(stats.entriesReturned).toBe(60);
  });

  it("gives up one that may answer with many rows, before it scans", async () => {
    const { querier, given } = smallQuerier({ maxCost: 50_000 }, large);
    await querier.run("query", request("{app=`a`}", {}, { limit: 20 }), never);
    scans.jobs.length = 0;
    const many = querier.run("query", request("{app=`a`}", {}, { limit: 30 }), never);
    await expect(many).rejects.toBe(moved);
    expect(given.map(({ cost }) => cost)).toEqual([30 * 2048]);
    expect(scans.jobs).toEqual([]);
  });

  it.each([
    ["{app=`a`} |= `a`", 10, true],
    ["{app=`a`} |= `a`", 1000, false],
    ["sum(count_over_time({app=`a`} |= `a` [2s]))", 10, true],
    ["sum by (app) (count_over_time({app=`a`} |= `a` [2s]))", 10, false],
    ["sum(count_over_time({app=`a`} |= `a` [2s])) / count(rate({app=`a`} |= `1` [2s]))", 10, false],
    ["quantile_over_time(0.5, {app=`a`} | json | unwrap b [2s]) by ()", 10, false],
  ])(
    "keeps one that reads much only where it finds little: %s, limit %d",
    async (query, limit, keeps) => {
      const bounds = { maxCost: 0, maxHeldBytes: 100_000 };
      const asked = request(query, {}, { limit });
      const { querier } = smallQuerier({ ...bounds, takesNarrow: true }, large);
      const ran = await querier.run("query", asked, never).then(
        () => true,
        (error: unknown) => {
          expect(error).toBe(moved);
          return false;
        },
      );
      expect(ran).toBe(keeps);
      await expect(smallQuerier(bounds, large).querier.run("query", asked, never)).rejects.toBe(
        moved,
      );
    },
  );

  it.each([
    "{app=`a`} |= `a`",
    "sum by (app) (count_over_time({app=`a`} |= `a` [2s]))",
    "sum(rate({app=`a`}[2s])) / sum(rate({app=`a`} |= `1` [3s]))",
  ])("gives what it found for %s to one that lists nothing again", async (query) => {
    const asked = request(query);
    const { querier, given } = smallQuerier({ maxCost: 0 });
    await expect(querier.run("query", asked, never)).rejects.toBe(moved);
    const next = nextQuerier(given[0]);
    const whole = nextQuerier(undefined);
    const [{ result }, { result: expected }] = [
      await next.querier.run("query", asked, never),
      await whole.querier.run("query", asked, never),
    ];
    expect(result).toEqual(expected);
    expect([next.listed, whole.listed.length > 0]).toEqual([[], true]);
  });

  it("gives what it found for a range to one that asks for parts of it", async () => {
    const { querier, given } = smallQuerier({ maxCost: 0 });
    await expect(querier.run("query", request("{app=`a`} |= `a`"), never)).rejects.toBe(moved);
    const next = nextQuerier(given[0]);
    const whole = request("{app=`a`} |= `a`");
    const [first, second] = segments as [(typeof segments)[0], (typeof segments)[0]];
    const part = { ...whole, plan: { ...whole.plan, fromNs: first.minNs, toNs: second.minNs } };
    const { stats } = await next.querier.run("query", part, never);
    expect([next.listed, stats.store.sources, stats.entriesReturned]).toEqual([[], 1, 10]);
  });

  it("has the next one find again what is gone", async () => {
    const { querier, given } = smallQuerier({ maxCost: 0 });
    const asked = request("{app=`a`} |= `a`");
    await expect(querier.run("query", asked, never)).rejects.toBe(moved);
    const [found] = given as [Found];
    const lists = found.lists.map((list) => ({
      ...list,
      sources: list.sources.map((source) => {
        const location = { kind: "file", path: `${directory.path}/gone.parquet` } as const;
        return { ...source, ref: { ...source.ref, id: "gone", location } as typeof source.ref };
      }),
    }));
    const next = nextQuerier({ ...found, lists });
    const { stats } = await next.querier.run("query", asked, never);
    expect([next.listed, stats.entriesReturned]).toEqual([[true], 60]);
  });

  it("gives what it found for a list of labels", async () => {
    const asked = { tenants: ["t"], selectors: [], fromNs: 0n, toNs: 2n ** 62n };
    const { querier, given } = smallQuerier({ maxCost: 0 });
    await expect(querier.run("labels", asked, never)).rejects.toBe(moved);
    const next = nextQuerier(given[0]);
    expect(await next.querier.run("labels", asked, never)).toEqual([
      { tenant: "t", texts: ["app"] },
    ]);
    expect(next.listed).toEqual([]);
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
